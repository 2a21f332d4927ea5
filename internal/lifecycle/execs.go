package lifecycle

import (
	"slices"
	"strings"

	"keryx/events"
)

// Exec is an exec that has not ended.
type Exec struct {
	Request events.ExecRequested
	Started bool
	PID     int
	// Stopping is true once the epoch that it belongs to has ended.
	Stopping bool
	// Awaiting is the approval without which it is not started; empty for none.
	Awaiting events.ApprovalID
	// Carried ones come from an epoch before; their request is cut.
	Carried bool
}

// execs are those of a session, open ones in order of request.
type execs struct {
	open  []Exec
	ended map[events.ExecID]execEnd
	order []events.ExecID // of ended, the oldest first
	whole bool            // nothing is forgotten
	// started remembers the sequence of each open exec's started event.
	started map[events.ExecID]events.Sequence
}

// execEnd is what is kept of an exec that has ended.
type execEnd struct {
	kind     events.Type // of its terminal event
	sequence events.Sequence
	executor events.PrincipalName
	instance events.Instance
}

func (x *execs) find(id events.ExecID) (Exec, bool) {
	i := x.index(id)
	if i < 0 {
		return Exec{}, false
	}
	return x.open[i], true
}

// ExecutorOf returns the executor that an exec was sent to, also after its end,
// unless that was so long ago that only the log knows.
func (s *State) ExecutorOf(id events.ExecID) (events.PrincipalName, bool) {
	if e, ok := s.execs.find(id); ok {
		return e.Request.Selection.Executor, true
	}
	e, ok := s.execs.ended[id]
	return e.executor, ok
}

func (x *execs) index(id events.ExecID) int {
	return slices.IndexFunc(x.open, func(e Exec) bool { return e.Request.Exec == id })
}

// stopAll marks what must end with the epoch.
func (x *execs) stopAll(reset bool) {
	for i := range x.open {
		if !reset || x.open[i].Request.Spec.Outlives != events.OutlivesSession {
			x.open[i].Stopping = true
		}
	}
}

// idle reports whether no exec runs that is to go on.
func (x *execs) idle() bool {
	return x.running() == 0
}

// running returns how many execs go on.
func (x *execs) running() int {
	n := 0
	for _, e := range x.open {
		if !e.Stopping {
			n++
		}
	}
	return n
}

func (x *execs) end(id events.ExecID, kind events.Type, seq events.Sequence) bool {
	i := x.index(id)
	if i < 0 {
		return false
	}
	if x.ended == nil {
		x.ended = make(map[events.ExecID]execEnd)
	}
	sel := x.open[i].Request.Selection
	x.ended[id] = execEnd{kind: kind, sequence: seq, executor: sel.Executor, instance: sel.Instance}
	x.order = append(x.order, id)
	for !x.whole && len(x.order) > KeptExecs {
		delete(x.ended, x.order[0])
		x.order = x.order[1:]
	}
	x.open = slices.Delete(x.open, i, i+1)
	delete(x.started, id)
	return true
}

// ExecsIn returns how many execs in a target have not ended.
func (s *State) ExecsIn(t events.TargetName) (n int) {
	for _, e := range s.execs.open {
		if e.Request.Selection.Target == t {
			n++
		}
	}
	return n
}

// Concerns reports whether d ends an exec of the session.
func (s *State) Concerns(d ExecutorLost) bool {
	return slices.ContainsFunc(s.execs.open, func(e Exec) bool { return d.concerns(e.Request.Selection) })
}

func (d ExecutorLost) concerns(sel events.Selection) bool {
	return sel.Executor == d.Executor && sel.Instance == d.Instance && (d.Target == "" || sel.Target == d.Target)
}

// Execs returns those that have not ended, in order of request.
func (s *State) Execs() []Exec { return slices.Clone(s.execs.open) }

func (s *State) foldExecRequested(r events.Record, d events.ExecRequested) {
	if _, ended := s.execs.ended[d.Exec]; ended || s.execs.index(d.Exec) >= 0 {
		return
	}
	e := Exec{Request: d}
	if d.Approval != nil {
		e.Awaiting = d.Approval.ID
	}
	s.execs.open = append(s.execs.open, e)
	s.keepAnswer(r, s.execAnswer(d))
}

func (s *State) foldExecStarted(r events.Record, d events.ExecStarted) {
	i := s.execs.index(d.Exec)
	if i < 0 || s.execs.open[i].Started {
		return
	}
	s.execs.open[i].Started, s.execs.open[i].PID = true, d.PID
	if s.execs.started == nil {
		s.execs.started = make(map[events.ExecID]events.Sequence)
	}
	s.execs.started[d.Exec] = r.Sequence
	s.keepAnswer(r, events.Done{Sequence: r.Sequence})
}

func (s *State) foldExecRefused(r events.Record, d events.ExecRefused) {
	s.endExec(r, d.Exec, "was refused: "+d.Message, d)
}

func (s *State) foldExecExited(r events.Record, d events.ExecExited) {
	s.endExec(r, d.Exec, howExited(d), d)
}

func (s *State) foldExecLost(r events.Record, d events.ExecLost) {
	s.endExec(r, d.Exec, "was lost: "+d.Reason, d)
}

func (s *State) endExec(r events.Record, id events.ExecID, how string, fact any) {
	e, open := s.execs.find(id)
	if s.execs.end(id, r.Type, r.Sequence) {
		s.clocks.activity = r.Time // a session is not idle while its own work goes on
		s.keepAnswer(r, events.Done{Sequence: r.Sequence})
	}
	if open {
		s.oweExit(e, how, fact)
	}
}

// execAnswer says where the output of an exec appears. The log may hold ids that no
// subject can; such an exec has no output subject.
func (s *State) execAnswer(d events.ExecRequested) events.ExecAnswer {
	a := events.ExecAnswer{Exec: d.Exec}
	if d.Approval != nil {
		a.Approval = d.Approval.ID
	}
	parts := []string{string(s.Profile), string(d.Selection.Executor), string(s.Session), string(d.Exec)}
	if !slices.ContainsFunc(parts, badToken) {
		a.OutSubject = events.OutSubject(s.Profile, d.Selection.Executor, s.Session, d.Exec)
	}
	return a
}

func badToken(t string) bool {
	return t == "" || strings.ContainsFunc(t, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == '.' || r == '*' || r == '>'
	})
}
