package e2e_test

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"keryx/events"
)

// leaseOp is one thing that was done with a lease, as its doer saw it.
type leaseOp struct {
	Kind     string          `json:"kind"` // acquire, renew, release, act, revoke
	Key      string          `json:"key"`
	Instance events.Instance `json:"instance"` // who does it
	Fence    events.Fence    `json:"fence,omitzero"`
	TTL      time.Duration   `json:"ttl,omitempty"`
	Call     time.Duration   `json:"call"` // boot time before it

	Return  time.Duration   `json:"return,omitempty"` // boot time after it; 0: its end was not seen
	Result  string          `json:"result,omitempty"`
	Granted events.Fence    `json:"granted,omitzero"` // what an acquire got, or what a revoke took away
	Holder  events.Instance `json:"holder,omitempty"` // whom an acquire was refused for, or a revoke took it from
}

// The results. Anything else means that nobody knows whether it was done.
const (
	opDone    = "done"
	opHeld    = "held"
	opLost    = "lost"
	opRevoked = "revoked"
	opNobody  = "nobody"
)

// leaseState is what is true of one lease.
type leaseState struct {
	inst    events.Instance
	fence   events.Fence  // zero with an inst: one that nobody learned
	last    events.Fence  // the greatest that was granted
	renewed time.Duration // begin of the newest request that counted
	ttl     time.Duration
	free    bool            // never held, or given back
	revoked bool            // taken away and not given back
	barred  events.Instance // does not get it again before another has had it
}

// leaseModel is the lease as all have to see it: one holder at a time, who alone acts;
// another gets it only once it was given back, or ttl has passed since the newest request
// of its holder; fences rise for ever.
var leaseModel = porcupine.NondeterministicModel{
	Partition: byKey,
	Init:      func() []any { return []any{leaseState{free: true}} },
	Step: func(state, in, _ any) []any {
		s, op := state.(leaseState), in.(leaseOp)
		switch op.Kind {
		case "acquire":
			return s.acquire(op)
		case "renew":
			return s.renew(op)
		case "release":
			return s.release(op)
		case "revoke":
			return s.revoke(op)
		}
		return legal(s, s.inst == op.Instance && s.fence == op.Fence && !s.free)
	},
}

func legal(s leaseState, ok bool) []any {
	if !ok {
		return nil
	}
	return []any{s}
}

func (s leaseState) acquire(op leaseOp) []any {
	switch op.Result {
	case opDone:
		return legal(s.granted(op, op.Granted))
	case opHeld:
		return legal(s, !s.free && s.inst == op.Holder && s.inst != op.Instance)
	case opRevoked:
		return legal(s, s.barred == op.Instance)
	}
	out := []any{s} // not done, or done with a fence that nobody learned
	if next, ok := s.granted(op, events.Fence{}); ok {
		out = append(out, next)
	}
	return out
}

// granted is the state after a grant under a fence; zero for one that is not known.
func (s leaseState) granted(op leaseOp, f events.Fence) (leaseState, bool) {
	same := !s.free && !s.revoked && s.inst == op.Instance
	if same && (f.IsZero() || f == s.fence || (s.fence.IsZero() && s.last.Less(f))) {
		s.renewed, s.ttl = op.Call, op.TTL
		if !f.IsZero() {
			s.fence, s.last = f, f
		}
		return s, true
	}
	over := s.free || op.Return >= s.renewed+s.ttl
	if !over || s.barred == op.Instance || (!f.IsZero() && !s.last.Less(f)) {
		return s, false
	}
	next := leaseState{inst: op.Instance, fence: f, last: s.last, renewed: op.Call, ttl: op.TTL}
	if !f.IsZero() {
		next.last = f
	}
	return next, true
}

func (s leaseState) renew(op leaseOp) []any {
	mine := s.inst == op.Instance && s.fence == op.Fence && !s.free && !s.revoked
	next := s
	next.renewed = max(s.renewed, op.Call)
	switch {
	case op.Result == opDone:
		return legal(next, mine)
	case op.Result == opLost:
		return legal(s, !mine)
	case mine:
		return []any{s, next}
	}
	return []any{s}
}

func (s leaseState) release(op leaseOp) []any {
	next := s
	if s.inst == op.Instance && s.fence == op.Fence {
		next.free, next.revoked = true, false
	}
	if op.Result == opDone {
		return []any{next}
	}
	return []any{s, next}
}

func (s leaseState) revoke(op leaseOp) []any {
	open := !s.free && !s.revoked
	next := s
	next.revoked, next.barred = true, s.inst
	switch {
	case op.Result == opDone:
		return legal(next, open && s.inst == op.Holder && (s.fence == op.Granted || s.fence.IsZero()))
	case op.Result == opNobody:
		return legal(s, !open)
	case open:
		return []any{s, next}
	}
	return []any{s}
}

func byKey(ops []porcupine.Operation) [][]porcupine.Operation {
	keys := make(map[string]int)
	var out [][]porcupine.Operation
	for _, op := range ops {
		k := op.Input.(leaseOp).Key
		i, ok := keys[k]
		if !ok {
			i = len(out)
			keys[k] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], op)
	}
	return out
}

// linearizable checks a history.
func linearizable(ops []leaseOp, within time.Duration) porcupine.CheckResult {
	clients := make(map[events.Instance]int)
	history := make([]porcupine.Operation, 0, len(ops))
	for _, op := range ops {
		if _, ok := clients[op.Instance]; !ok {
			clients[op.Instance] = len(clients)
		}
		if op.Return == 0 || op.Result == "" {
			op.Return = math.MaxInt64 // it may be done at any time from its call on
		}
		history = append(history, porcupine.Operation{
			ClientId: clients[op.Instance], Input: op, Call: int64(op.Call), Return: int64(op.Return),
		})
	}
	return porcupine.CheckOperationsTimeout(leaseModel.ToModel(), history, within)
}

// The model has to refuse what must never happen.
func TestTheModelOfLeasesKnowsRightFromWrong(t *testing.T) {
	t.Parallel()
	const s = time.Second
	fence := func(n events.Sequence) events.Fence { return events.Fence{Generation: 1, Sequence: n} }
	get := func(i events.Instance, f events.Sequence, at time.Duration) leaseOp {
		return leaseOp{Kind: "acquire", Instance: i, TTL: 2 * s, Call: at, Return: at + 1, Result: opDone, Granted: fence(f)}
	}
	with := func(kind string, i events.Instance, f events.Sequence, at time.Duration, result string) leaseOp {
		return leaseOp{Kind: kind, Instance: i, Fence: fence(f), Call: at, Return: at + 1, Result: result}
	}
	lostAnswer := get("b", 0, 2*s)
	lostAnswer.Result, lostAnswer.Granted = "", events.Fence{}
	for name, c := range map[string]struct {
		ops []leaseOp
		ok  bool
	}{
		"one after another":             {[]leaseOp{get("a", 1, 1*s), with("act", "a", 1, 2*s, opDone), get("b", 4, 4*s), with("renew", "a", 1, 5*s, opLost)}, true},
		"given back":                    {[]leaseOp{get("a", 1, 1*s), with("release", "a", 1, 2*s, opDone), get("b", 4, 2*s+2)}, true},
		"an answer that was lost":       {[]leaseOp{get("a", 1, 0), lostAnswer, with("renew", "a", 1, 5*s, opLost), get("b", 4, 6*s)}, true},
		"taken before the ttl was over": {[]leaseOp{get("a", 1, 1*s), get("b", 4, 2*s)}, false},
		"taken though renewed":          {[]leaseOp{get("a", 1, 1*s), with("renew", "a", 1, 2*s, opDone), get("b", 4, 3*s+2)}, false},
		"a fence twice":                 {[]leaseOp{get("a", 1, 1*s), get("b", 1, 4*s)}, false},
		"a fence that falls":            {[]leaseOp{get("a", 5, 1*s), get("b", 4, 4*s)}, false},
		"acting after another took it":  {[]leaseOp{get("a", 1, 1*s), get("b", 4, 4*s), with("act", "a", 1, 5*s, opDone)}, false},
		"renewed after another took it": {[]leaseOp{get("a", 1, 1*s), get("b", 4, 4*s), with("renew", "a", 1, 5*s, opDone)}, false},
		"lost though held":              {[]leaseOp{get("a", 1, 1*s), with("renew", "a", 1, 2*s, opLost)}, false},
		"got again after a revocation": {[]leaseOp{
			get("a", 1, 1*s),
			{Kind: "revoke", Instance: "op", Call: 2 * s, Return: 2*s + 1, Result: opDone, Holder: "a", Granted: fence(1)},
			get("a", 4, 9*s),
		}, false},
	} {
		if got := linearizable(c.ops, 10*s) == porcupine.Ok; got != c.ok {
			t.Errorf("%s: linearizable is %v", name, got)
		}
	}
}
