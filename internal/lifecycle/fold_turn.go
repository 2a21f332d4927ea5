package lifecycle

import (
	"time"

	"keryx/events"
	"keryx/internal/idle"
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

func (s *State) setTurn(t TurnEntry) {
	if s.turns == nil {
		s.turns = make(map[events.TurnID]TurnEntry)
	}
	s.turns[t.Turn] = t
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
	s.keepAnswer(r, lateAnswer(t))
}

func lateAnswer(t TurnEntry) events.Ended {
	return events.Ended{Turn: t.Turn, Outcome: t.Outcome, Late: true}
}

// foldQueued takes a new item, or one that a reset carried over in an event of its own
// because it did not fit into the carry: that one has its sequence already.
func (s *State) foldQueued(r events.Record, d events.ContinuationQueued) {
	first := d.Item.Sequence == 0
	if first {
		d.Item.Sequence = r.Sequence
	}
	s.Queue.Enqueue(d.Item)
	s.toldExit(d.Item)
	s.clocks.activity = r.Time
	if receipt, ok := s.Receipt(d.Item.Receipt); ok && first {
		s.keepAnswer(r, receipt)
	}
}

func (s *State) foldOffered(r events.Record, d events.ContinuationOffered) {
	s.Queue.Offer(idle.Offer{
		ID: d.Offer, Items: d.Items, Host: d.Host, Instance: d.Instance,
		At: r.Time, Deadline: millis(d.DeadlineMS),
	})
}

// foldRequeued tells a decline, which has a delay, from an offer taken back on the way
// to something else, which has none and is nobody's answer.
func (s *State) foldRequeued(r events.Record, d events.ContinuationRequeued) {
	if d.DelayMS <= 0 {
		s.Queue.Requeue(d.Items, time.Time{})
		return
	}
	s.Queue.Requeue(d.Items, r.Time.Add(millis(d.DelayMS)))
	s.keepAnswer(r, events.Done{Sequence: r.Sequence})
}

func (s *State) foldUnresolved(_ events.Record, d events.ContinuationUnresolved) {
	s.Queue.Unresolve(d.Items, d.Reason)
}

func (s *State) foldInvalidated(_ events.Record, d events.ContinuationInvalidated) {
	s.Queue.Invalidate(d.Items, d.Reason)
}

// millis turns wire milliseconds into a duration, bounded so that it cannot overflow.
func millis(ms int64) time.Duration {
	const most = int64(365 * 24 * time.Hour / time.Millisecond)
	return time.Duration(min(max(ms, 0), most)) * time.Millisecond
}
