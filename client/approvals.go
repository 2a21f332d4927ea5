package client

import (
	"context"

	"keryx/events"
)

// Approve lets the action of an approval run, if nothing that it is bound to has moved.
// A gateway names the platform user for whom it answers; operators leave that empty.
// Refusals have the codes unknown_approval, already_answered, approval_expired,
// stale_approval and forbidden.
func (c *Conn) Approve(ctx context.Context, id events.ApprovalID, user events.PlatformUser) (events.ApprovalView, error) {
	return ask[events.ApprovalView](ctx, c, events.CmdApprovalGrant, events.GrantApproval{Approval: id, PlatformUser: user})
}

// Deny refuses the action of an approval. It is answered like [Conn.Approve].
func (c *Conn) Deny(ctx context.Context, id events.ApprovalID, user events.PlatformUser, reason string) (events.ApprovalView, error) {
	return ask[events.ApprovalView](ctx, c, events.CmdApprovalDeny, events.DenyApproval{Approval: id, PlatformUser: user, Reason: reason})
}

// Approval tells where an approval stands, also for some time after its end.
func (c *Conn) Approval(ctx context.Context, id events.ApprovalID) (events.ApprovalView, error) {
	return ask[events.ApprovalView](ctx, c, events.CmdApprovalShow, events.ApprovalShow{Approval: id})
}

// Approvals returns the open approvals of a session, or of all if to is empty; with ended
// also those that have ended and are remembered. Oldest first, 1,000 at most.
func (c *Conn) Approvals(ctx context.Context, to string, ended bool) ([]events.ApprovalView, error) {
	a, err := ask[events.Approvals](ctx, c, events.CmdApprovalList, events.ApprovalList{To: to, Ended: ended})
	return a.Approvals, err
}

// SetPolicy changes what p names of a session's policy and returns the whole of it.
func (c *Conn) SetPolicy(ctx context.Context, p events.SetPolicy) (events.PolicyAnswer, error) {
	return ask[events.PolicyAnswer](ctx, c, events.CmdSessionPolicy, p)
}

// AskPolicy asks whether a tool may run, and returns the verdict. An error is no verdict:
// the tool must not run.
func (c *Conn) AskPolicy(ctx context.Context, q events.AskPolicy) (events.QuestionView, error) {
	return ask[events.QuestionView](ctx, c, events.CmdPolicyAsk, q)
}

// Question tells what is known of a question by the id of the command that asked it.
func (c *Conn) Question(ctx context.Context, session events.SessionID, id events.CommandID) (events.QuestionView, error) {
	return ask[events.QuestionView](ctx, c, events.CmdPolicyShow, events.QuestionShow{Session: session, Question: id})
}

// AskPolicy asks whether a tool may run in this turn. digest is a SHA-256, in small
// hexadecimal letters, of what the tool is to do. An error is no verdict: the tool must
// not run.
func (t *Turn) AskPolicy(ctx context.Context, tool string, digest events.ActionDigest) (events.QuestionView, error) {
	q, err := t.conn.AskPolicy(ctx, events.AskPolicy{
		Session: t.Session, Fence: t.Fence, Turn: t.ID, Tool: tool, Digest: digest,
	})
	return q, t.stale(err)
}

// VotePolicy answers a question that was put to this instance. [Conn.ServeJudge] does it
// for judges that need nothing special.
func (c *Conn) VotePolicy(ctx context.Context, v events.VotePolicy) error {
	v.Instance = c.cfg.Instance
	return c.Do(ctx, events.CmdPolicyVote, v, nil)
}
