package authority

import (
	"context"
	"slices"
	"strings"

	"keryx/events"
	"keryx/internal/approvals"
	"keryx/internal/lifecycle"
)

// outside fills in what a decision needs and the session's log does not say: where an
// exec is to run, and who is asked before a tool does. Nothing can be approved while no
// executor can be connected: where the exec would run is not known then.
func (l *lane) outside(cmd *lifecycle.Command) error {
	switch d := cmd.Data.(type) {
	case events.StartExec:
		cmd.Place = l.t.place(l.profile, l.id, d.Selection)
	case events.GrantApproval:
		if l.t.cfg.Offline {
			return events.Errorf(events.CodeUnavailable, "only a running bus can start what is approved")
		}
		cmd.Place = l.placeOf(d.Approval)
	case lifecycle.UseApproval:
		cmd.Place = l.placeOf(d.Approval)
	case events.InvokeCommand:
		cmd.Handler = l.t.handlerPlace(l.profile, d.Name)
	case events.AskPolicy:
		cmd.Judges = l.t.judges(l.profile)
	}
	return nil
}

func (l *lane) placeOf(id events.ApprovalID) lifecycle.Place {
	v, _ := l.state.Approval(id)
	sel, ok := l.state.SelectionOf(v.Exec)
	if !ok {
		return lifecycle.Place{} // no such exec: the decision says so
	}
	return l.t.place(l.profile, l.id, sel)
}

// place is where a selection leads now.
func (t *term) place(p events.Profile, id events.SessionID, sel events.Selection) lifecycle.Place {
	if err := t.checkSelection(p, id, sel); err != nil {
		return lifecycle.Place{Moved: err}
	}
	l := t.profiles.get(p)
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	reg, _ := l.targets.Find(sel.Target)
	return lifecycle.Place{Target: approvals.TargetOf(reg.Spec, sel.Generation, sel.AccessEpoch)}
}

// judges are the processes that are registered to be asked: those that hold a lease of
// kind policy.
func (t *term) judges(p events.Profile) []events.Judge {
	var out []events.Judge
	for _, v := range t.granter.List(p) {
		if v.Key.Kind == events.LeasePolicy && v.State == events.LeaseHeld {
			out = append(out, events.Judge{Principal: v.Holder, Instance: v.Instance})
		}
	}
	return out
}

// useApproval has the next granted approval used, or ended if what it is for has moved.
// It reports whether that brought the session further.
func (l *lane) useApproval(ctx context.Context) bool {
	if l.t.cfg.Offline { // nothing can be started
		return false
	}
	granted := lifecycle.Granted(l.state)
	if len(granted) == 0 {
		return false
	}
	before := l.state.LastSequence
	l.internal(ctx, lifecycle.UseApproval{Approval: granted[0].Approval})
	return l.state.LastSequence != before
}

// await keeps a request whose answer comes with a later event.
func (l *lane) await(req *request) {
	if l.waiting == nil {
		l.waiting = make(map[events.CommandID][]string)
	}
	if !slices.Contains(l.waiting[req.id], req.reply) {
		l.waiting[req.id] = append(l.waiting[req.id], req.reply)
	}
}

// answerWaiting answers those requests whose answer has come.
func (l *lane) answerWaiting() {
	for id, replies := range l.waiting {
		answer, ok := l.state.Answer(id)
		if !ok {
			continue
		}
		for _, reply := range replies {
			l.t.send(reply, events.StatusOK, "", answer)
		}
		delete(l.waiting, id)
	}
}

// approval is the approval that a request names; empty if it names none.
func (r *request) approval() events.ApprovalID {
	switch d := r.data.(type) {
	case events.GrantApproval:
		return d.Approval
	case events.DenyApproval:
		return d.Approval
	}
	return ""
}

func (t *term) approvalLane(p events.Profile, id events.ApprovalID) (*lane, error) {
	if l := t.sessions.byApproval(p, id); l != nil {
		return l, nil
	}
	return nil, unknownApproval(id)
}

func unknownApproval(id events.ApprovalID) error {
	return events.Errorf(events.CodeUnknownApproval, "no approval has the id %s", id)
}

// approval answers approval.show.
func (t *term) approval(req *request, id events.ApprovalID) {
	l, err := t.approvalLane(req.caller.Profile, id)
	if err != nil {
		t.fail(req, err)
		return
	}
	t.onLane(req, l, func(context.Context) {
		v, known := l.state.Approval(id)
		if !known {
			t.fail(req, unknownApproval(id))
			return
		}
		t.answer(req.reply, v)
	})
}

// approvals answers approval.list. A session that is not in memory has none open.
func (t *term) approvals(req *request, d events.ApprovalList) {
	if d.To != "" {
		t.onSession(req, d.To, func(_ context.Context, l *lane) (any, error) {
			return inTime(l.state.Approvals(d.Ended)), nil
		})
		return
	}
	var all []events.ApprovalView
	for l := range t.sessions.all(req.caller.Profile) {
		l.view(func(s *lifecycle.State) { all = append(all, s.Approvals(d.Ended)...) })
	}
	t.answer(req.reply, inTime(all))
}

// inTime orders approvals by the time of their request, as their ids are, and keeps the
// newest.
func inTime(all []events.ApprovalView) events.Approvals {
	slices.SortStableFunc(all, func(a, b events.ApprovalView) int {
		return strings.Compare(string(a.Approval), string(b.Approval))
	})
	if extra := len(all) - listLimit; extra > 0 {
		all = all[extra:]
	}
	return events.Approvals{Approvals: append([]events.ApprovalView{}, all...)}
}

// question answers policy.show.
func (l *lane) question(id events.CommandID) (events.QuestionView, error) {
	v, known := l.state.Question(id)
	if !known {
		return v, events.Errorf(events.CodeUnknownQuestion, "session %s has no question %s", l.id, id)
	}
	return v, nil
}
