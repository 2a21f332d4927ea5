package lifecycle

import (
	"slices"
	"time"

	"keryx/events"
)

func (s *State) foldTurnStarted(r events.Record, d events.TurnStarted) {
	s.Queue.Accept(d.Items, d.Turn)
	if _, known := s.turns[d.Turn]; known || d.Turn == "" {
		return
	}
	t := TurnEntry{
		Turn: d.Turn, Epoch: s.Epoch, Offer: d.Offer, Items: d.Items, Host: d.Host,
		Instance: d.Instance, TaskID: d.TaskID, StartedAt: r.Time, StartSequence: r.Sequence,
	}
	if s.Host != nil {
		t.Fence = s.Host.Fence
	}
	s.setTurn(t)
	s.running = d.Turn
	s.Turns++
	s.keepAnswer(r, events.Accepted{Turn: d.Turn, Epoch: s.Epoch})
}

func (s *State) foldTurnSteered(r events.Record, d events.TurnSteered) {
	t, known := s.turns[d.Turn]
	if !known || !t.Running() || slices.Contains(t.Steers, d.Offer) {
		return
	}
	s.Queue.Accept(d.Items, d.Turn)
	t.Items, t.Steers = slices.Concat(t.Items, d.Items), slices.Concat(t.Steers, []events.OfferID{d.Offer})
	s.setTurn(t)
	s.keepAnswer(r, events.Accepted{Turn: d.Turn, Epoch: s.Epoch})
}

func (s *State) setTurn(t TurnEntry) {
	if s.turns == nil {
		s.turns = make(map[events.TurnID]TurnEntry)
	}
	s.turns[t.Turn] = t
	if t.Running() || slices.Contains(s.ended, t.Turn) {
		return
	}
	s.ended = append(s.ended, t.Turn)
	for !s.whole && len(s.ended) > KeptTurns {
		delete(s.turns, s.ended[0])
		s.ended = s.ended[1:]
	}
}

func (s *State) foldTurnEnded(r events.Record, d events.TurnEnded) {
	t, known := s.turns[d.Turn]
	if known && !t.Running() || d.Turn == "" || d.Outcome == "" {
		return
	}
	t.Turn, t.Outcome, t.EndSequence, t.EndedAt = d.Turn, d.Outcome, r.Sequence, r.Time
	t.Epoch = or(t.Epoch, s.Epoch)
	s.setTurn(t)
	s.Queue.Settle(d.Settled, d.Turn, d.Outcome)
	if s.running == d.Turn {
		s.running = ""
	}
	s.clocks.activity, s.clocks.lastTurn = r.Time, d.Turn
	s.clocks.idle = &events.SessionIdle{
		Turn: d.Turn, Reason: d.Outcome, Pending: d.Pending,
		BackgroundRunning: d.BackgroundRunning, Since: r.Time,
	}
	s.keepAnswer(r, events.Ended{Turn: d.Turn, Outcome: d.Outcome})
}

// foldReportedLate keeps what a lost turn's host said in the end. The turn is unknown
// when the fold began after it.
func (s *State) foldReportedLate(r events.Record, d events.TurnReportedLate) {
	t := s.turns[d.Turn]
	if t.LateSequence != 0 || d.Turn == "" || d.Turn == s.running {
		return
	}
	t.Turn, t.Outcome, t.LateSequence = d.Turn, or(t.Outcome, events.OutcomeLost), r.Sequence
	s.setTurn(t)
	s.Queue.Late(d.Turn, d.Outcome)
	s.keepAnswer(r, lateAnswer(t))
}

func lateAnswer(t TurnEntry) events.Ended {
	return events.Ended{Turn: t.Turn, Outcome: t.Outcome, Late: true}
}

// millis turns wire milliseconds into a duration, bounded so that it cannot overflow.
func millis(ms int64) time.Duration {
	const most = int64(365 * 24 * time.Hour / time.Millisecond)
	return time.Duration(min(max(ms, 0), most)) * time.Millisecond
}
