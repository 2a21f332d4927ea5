package lifecycle

import (
	"encoding/json"
	"slices"
	"time"

	"keryx/events"
)

// beginEpoch makes s the state of a fresh epoch: what the carry holds, and nothing
// else that lives. What can only be asked for (turns, receipts, answers) stays known.
func (s *State) beginEpoch(r events.Record, c events.Carry) {
	s.Profile, s.Session = r.Profile, events.SessionID(r.Scope)
	s.Epoch = max(r.Epoch, s.Epoch+1)
	s.Finalized, s.Reason, s.Started = false, "", false
	s.Begun, s.Removed = Begun{Sequence: r.Sequence, At: r.Time}, false
	s.Owner, s.Policy = c.Owner, c.Policy
	s.Home, s.Source, s.Surface = c.Home, c.Source, c.Surface
	s.Names, s.Lineage = slices.Clone(c.Names), slices.Clone(c.Lineage)
	s.Host, s.Fence = c.Host, c.Fence
	s.Turns, s.CreatedAt = c.Turns, c.CreatedAt
	s.running, s.exits = "", nil
	s.clocks = clocks{epoch: r.Sequence}
	s.execs.restore(c)
	s.Queue.Restart(c.Items)
	s.Queue.Remember(c.Keys)
	s.answers.restore(c.Answers, c.AnswersFrom)
}

// restore makes the carried execs the open ones.
func (x *execs) restore(c events.Carry) {
	started := make(map[events.ExecID]int, len(c.ExecsStarted))
	for _, st := range c.ExecsStarted {
		started[st.Exec] = st.PID
	}
	x.open, x.started = nil, nil
	for _, req := range c.Execs {
		pid, ok := started[req.Exec]
		x.open = append(x.open, Exec{
			Request: req, Started: ok, PID: pid, Carried: true,
			Stopping: req.Spec.Outlives != events.OutlivesSession,
		})
	}
}

// carry returns what outlives the epoch. Items are given apart, since only a reset
// lets them live on.
func (s *State) carry(now time.Time) events.Carry {
	c := events.Carry{
		Owner: s.Owner, Names: s.carriedNames(), Policy: s.Policy,
		Home: s.Home, Source: s.Source, Surface: s.Surface,
		Fence: s.Fence, Turns: s.Turns, CreatedAt: s.CreatedAt,
	}
	c.Answers, c.AnswersFrom = s.answers.carry(now)
	c.Keys = fitting(s.Queue.Keys(s.Session, now), carryKeyBytes)
	c.Execs, c.ExecsStarted = s.carriedExecs()
	return c
}

// carriedNames keeps gateway keys current. Other ids stay behind as names of the
// epoch they were given in; the newest that fit are carried, and the name records
// know the rest.
func (s *State) carriedNames() []events.OwnedName {
	var out []events.OwnedName
	old, size := 0, 0
	for _, n := range slices.Backward(s.Names) {
		n.Current = n.Current && n.Kind == events.KindGatewayKey
		if !n.Current {
			old++
			size += len(n.Value) + len(n.Owner) + 100
			if old > carryOldNames || size > carryOldBytes {
				continue
			}
		}
		out = append(out, n)
	}
	slices.Reverse(out)
	return out
}

func (s *State) carriedExecs() (open []events.ExecRequested, started []events.ExecStarted) {
	for _, e := range s.execs.open {
		req := e.Request
		req.Spec.Stdin, req.Spec.EnvSet, req.Spec.EnvUnset = nil, nil, nil
		req.Spec.Argv = cut(req.Spec.Argv, carryArgvBytes)
		if e.Stopping {
			req.Spec.Outlives = events.OutlivesEpoch
		}
		open = append(open, req)
		if e.Started {
			started = append(started, events.ExecStarted{Exec: req.Exec, PID: e.PID})
		}
	}
	return open, started
}

// cut keeps the arguments that fit, for telling which command it was.
func cut(argv []string, limit int) []string {
	for i, a := range argv {
		if limit -= len(a); limit < 0 {
			return append(slices.Clone(argv[:i]), "...")
		}
	}
	return argv
}

// fitting returns the newest keys that fit, oldest first.
func fitting(keys []events.KeyedReceipt, limit int) []events.KeyedReceipt {
	for i, k := range slices.Backward(keys) {
		if limit -= encodedSize(k); limit < 0 {
			return keys[i+1:]
		}
	}
	return keys
}

// split returns how many items fit into the carry, from the head.
func split(its []events.Item) int {
	limit := carryItemBytes
	for i, it := range its {
		if limit -= encodedSize(it); limit < 0 {
			return i
		}
	}
	return len(its)
}

func encodedSize(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return carryItemBytes // cannot be carried; it follows as an event of its own
	}
	return len(b)
}
