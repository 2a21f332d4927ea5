package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"keryx/events"
	"keryx/internal/termtext"
)

// Answer approves or denies what waits for somebody's word, named by the approval's id or
// the end of that; with no name, the only one that waits. It is answered in the name of the
// operator who sits at the chat, else for [Config.User]. It returns what was answered.
func (c *Chat) Answer(ctx context.Context, name string, yes bool) (events.ApprovalView, error) {
	word, reason, _ := strings.Cut(strings.TrimSpace(name), " ")
	open, err := c.conn.Approvals(ctx, string(c.session), false)
	if err != nil {
		return events.ApprovalView{}, fmt.Errorf("read what waits for approval: %w", err)
	}
	id, err := approvalNamed(open, strings.ToUpper(word))
	if err != nil {
		return events.ApprovalView{}, err
	}
	conn, user := c.conn, c.cfg.User
	if c.cfg.Operator != nil {
		conn, user = c.cfg.Operator, ""
	}
	if yes {
		return conn.Approve(ctx, id, user)
	}
	return conn.Deny(ctx, id, user, strings.TrimSpace(reason))
}

// approvalNamed returns the id that a person means. A whole id is taken as it is: the bus
// says what became of one that is not open any more.
func approvalNamed(open []events.ApprovalView, name string) (events.ApprovalID, error) {
	if events.IsULID(name) {
		return events.ApprovalID(name), nil
	}
	var found []events.ApprovalID
	for _, v := range open {
		if name == "" || len(name) >= shortID && strings.HasSuffix(string(v.Approval), name) {
			found = append(found, v.Approval)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(open) == 0:
		return "", errors.New("nothing waits for approval")
	case len(found) == 0:
		return "", fmt.Errorf("no approval %q waits; %d do, by their ids or the last %d characters of them", name, len(open), shortID)
	}
	return "", fmt.Errorf("%d wait; say which: /approve ID", len(found))
}

// actionOf says what an approval is for, in a line.
func actionOf(d events.ApprovalRequested) string {
	text := fmt.Sprintf("in %s: %s", d.Target, commandOf(d.Argv))
	if d.Cwd != "" {
		text += " in directory " + d.Cwd
	}
	return termtext.Visible(text)
}

// asked tells that something waits for somebody's word.
func (r *runner) asked(d events.ApprovalRequested) {
	short := string(d.Approval)[max(0, len(d.Approval)-shortID):]
	r.front.Notice(fmt.Sprintf("APPROVAL %s: %s wants to run %s\n  /approve %s or /deny %s, within 5 minutes; bus approvals %s shows all of it",
		short, d.Requester, actionOf(d), short, short, d.Approval))
}

// unapproved tells how an approval ended that was not used.
func (r *runner) unapproved(id events.ApprovalID, how string) {
	r.front.Notice(fmt.Sprintf("approval %s %s; nothing was started", string(id)[max(0, len(id)-shortID):], termtext.Visible(how)))
}

// foldApproval tells of approvals.
func (r *runner) foldApproval(rec events.Record) error {
	switch rec.Type {
	case events.TypeApprovalRequested:
		return with(rec, r.asked)
	case events.TypeApprovalDenied:
		return with(rec, func(d events.ApprovalDenied) { r.unapproved(d.Approval, "denied "+d.Reason) })
	case events.TypeApprovalExpired:
		return with(rec, func(d events.ApprovalExpired) { r.unapproved(d.Approval, "expired") })
	case events.TypeApprovalInvalidated:
		return with(rec, func(d events.ApprovalInvalidated) { r.unapproved(d.Approval, "ended: "+d.Reason) })
	case events.TypeApprovalGranted:
		return with(rec, func(d events.ApprovalGranted) {
			r.front.Notice("approval " + string(d.Approval)[max(0, len(d.Approval)-shortID):] + " granted")
		})
	}
	return nil
}
