package lifecycle

import "keryx/events"

// History returns an empty state that forgets nothing: the fold of a whole log into it
// says of every turn, item and exec where it stands. In all else it is the state that
// the fold into a zero [State] gives, and decides the same.
func History() State {
	s := State{whole: true}
	s.execs.whole = true
	s.Queue.Whole()
	return s
}

// Mentions returns the turn, item and exec that a command names and that s does not
// have; empty for none. They may be new, unknown, or so old that only the log knows:
// such a command is to be decided in the [History].
func Mentions(s *State, data any) (t events.TurnID, r events.ReceiptID, x events.ExecID) {
	t, r, x = mentioned(data)
	if _, ok := s.turns[t]; ok {
		t = ""
	}
	if _, ok := s.Receipt(r); ok {
		r = ""
	}
	if _, ok := s.ExecutorOf(x); ok {
		x = ""
	}
	return t, r, x
}

func mentioned(data any) (t events.TurnID, r events.ReceiptID, x events.ExecID) {
	switch d := data.(type) {
	case events.Accept:
		t = d.Turn
	case events.End:
		t = d.Turn
	case events.Interrupt:
		t = d.Turn
	case events.StartExec:
		t = d.Turn
	case events.Cancel:
		r = d.Receipt
	case events.Edit:
		r = d.Receipt
	case events.Requeue:
		r = d.Receipt
	case events.Discard:
		r = d.Receipt
	case events.StopExec:
		x = d.Exec
	default:
		x = reported(data)
	}
	return t, r, x
}

// reported is the exec that an executor's report is about.
func reported(data any) events.ExecID {
	switch d := data.(type) {
	case events.ReportStarted:
		return d.Fact.Exec
	case events.ReportRefused:
		return d.Fact.Exec
	case events.ReportExited:
		return d.Fact.Exec
	case events.ReportLost:
		return d.Fact.Exec
	}
	return ""
}
