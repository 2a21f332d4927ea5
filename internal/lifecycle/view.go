package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"keryx/events"
)

// CurrentNames returns the session's names as they are now: the oldest gateway key,
// the end of the lineage, the newest of the others, and the running turn's task.
func (s *State) CurrentNames() events.Names {
	n := events.Names{
		StoredSessionID: s.stored(), Home: s.Home, Source: s.Source, Surface: s.Surface,
	}
	for _, o := range s.Names {
		if !o.Current {
			continue
		}
		switch o.Kind {
		case events.KindGatewayKey:
			n.GatewaySessionKey = or(n.GatewaySessionKey, events.GatewaySessionKey(o.Value))
		case events.KindAgent:
			n.SessionID = events.AgentSessionID(o.Value)
		case events.KindRuntime:
			n.RuntimeSessionID = events.RuntimeSessionID(o.Value)
		}
	}
	if t := s.Running(); t != nil {
		n.TaskID = t.TaskID
	}
	return n
}

// NameOf returns what the session knows of a name; nil when it does not have it, or had
// it so long ago that only the name's record knows.
func (s *State) NameOf(n events.Name) *events.OwnedName {
	i := slices.IndexFunc(s.Names, func(o events.OwnedName) bool { return o.Name == n })
	if i < 0 {
		return nil
	}
	own := s.Names[i]
	return &own
}

// Summary returns the session's line in a list. WantedHosts is empty for a session
// that takes the profile's default hosts, which the state does not know.
func (s *State) Summary() events.SessionSummary {
	sum := events.SessionSummary{
		Session: s.Session, Epoch: s.Epoch, Status: s.Status(), Names: s.CurrentNames(),
		Keys: s.keys(), Turn: s.running, Pending: s.Queue.Pending(), Turns: s.Turns,
		CreatedAt: s.CreatedAt, LastAt: s.LastTime, LastOrd: s.LastOrdinal, LastSeq: s.LastSequence,
		WaitingFor: s.WaitingFor(), WantedHosts: slices.Clone(s.Policy.Hosts),
	}
	if s.Host != nil {
		sum.Host = s.Host.Host
	}
	return sum
}

func (s *State) keys() []string {
	keys := []string{}
	for _, o := range s.Names {
		if o.Current && o.Kind == events.KindGatewayKey {
			keys = append(keys, o.Value)
		}
	}
	return keys
}

// Status returns the state in one word.
func (s *State) Status() events.SessionStatus {
	switch {
	case !s.Open():
		return events.StatusFinalized
	case s.running != "":
		return events.StatusRunning
	case s.Host != nil:
		return events.StatusAttached
	}
	return events.StatusRegistered
}

// WaitingFor says in words what must happen next; empty when nothing waits.
func (s *State) WaitingFor() string {
	if !s.Open() {
		return ""
	}
	if open := s.approvals.Open(); len(open) > 0 {
		return "somebody to approve or deny " + string(open[0].Approval)
	}
	if s.running != "" {
		return "turn " + string(s.running) + " to end"
	}
	if o, ok := s.OpenOffer(); ok {
		return "the host to answer offer " + string(o.ID)
	}
	group, ready := s.next()
	switch {
	case len(group) == 0:
		return s.waitingLater()
	case s.Host == nil:
		return "a host to attach"
	case !group[0].NotBefore.IsZero():
		return "the delay after a decline to pass"
	case !ready.IsZero():
		return "more messages to merge"
	}
	return "the next offer"
}

// waitingLater says what items wait for that are not to be delivered now.
func (s *State) waitingLater() string {
	switch at := s.Queue.NextDue(); {
	case !at.IsZero():
		return "the time " + at.UTC().Format(time.RFC3339)
	case s.Queue.Kept() > 0:
		return "a user's message, before more automatic ones"
	case len(s.Queue.Unresolved()) > 0:
		return "somebody to requeue or discard what is unresolved"
	}
	return ""
}

// View returns the whole folded state.
func (s *State) View() events.SessionView {
	v := events.SessionView{
		SessionSummary: s.Summary(), Policy: s.Policy, AllNames: slices.Clone(s.Names),
		Lineage: slices.Clone(s.Lineage), Started: s.Started, Reason: s.Reason,
		Queue: s.queueView(), Execs: s.execViews(),
	}
	if s.Host != nil {
		h := *s.Host
		v.Attached = &h
	}
	if t := s.Running(); t != nil {
		tv := s.TurnView(*t)
		v.Running = &tv
	}
	return v
}

// TurnView returns what the fold knows of a turn; reply, error and late report are in
// the log at the entry's sequences.
func (s *State) TurnView(t TurnEntry) events.TurnView {
	v := events.TurnView{
		Turn: t.Turn, Session: s.Session, Epoch: t.Epoch, State: events.TurnRunning,
		Outcome: t.Outcome, Host: t.Host, Items: slices.Clone(t.Items), TaskID: t.TaskID,
		StartedAt: t.StartedAt, EndedAt: t.EndedAt,
	}
	switch {
	case t.LateSequence != 0:
		v.State = events.TurnReportedOnce
	case !t.Running():
		v.State = events.TurnEndedState
	}
	return v
}

func (s *State) queueView() []events.ItemView {
	out := []events.ItemView{}
	for _, it := range slices.Concat(s.Queue.Waiting(), s.Queue.Unresolved()) {
		r, _ := s.Receipt(it.Receipt)
		out = append(out, events.ItemView{
			Receipt: it.Receipt, State: r.State, Kind: it.Kind, Text: it.Body.Text,
			Sender: it.Sender, QueuedAt: it.QueuedAt, Mode: it.Mode, Reason: r.Reason,
			NotBefore: it.NotBefore, ExpiresAt: it.ExpiresAt,
		})
	}
	return out
}

func (s *State) execViews() []events.ExecView {
	var out []events.ExecView
	for _, e := range s.execs.open {
		out = append(out, events.ExecView{
			Exec: e.Request.Exec, Turn: e.Request.Turn, Target: e.Request.Selection.Target,
			Executor: e.Request.Selection.Executor, Argv: slices.Clone(e.Request.Spec.Argv),
			Started: e.Started, PID: e.PID, Background: e.Request.Spec.Background, Awaiting: e.Awaiting,
		})
	}
	return out
}

// TurnList returns the turns that began before one, or the newest, newest first, and
// whether there are more.
func (s *State) TurnList(before events.TurnID, limit int) (out []events.TurnView, more bool) {
	all := make([]TurnEntry, 0, len(s.turns))
	from := s.turns[before]
	for _, t := range s.turns {
		if before == "" || t.StartSequence < from.StartSequence {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b TurnEntry) int { return cmp.Compare(b.StartSequence, a.StartSequence) })
	more = len(all) > limit
	out = make([]events.TurnView, 0, min(len(all), limit))
	for _, t := range all[:min(len(all), limit)] {
		out = append(out, s.TurnView(t))
	}
	return out, more
}
