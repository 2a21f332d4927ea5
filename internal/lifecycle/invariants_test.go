package lifecycle_test

import (
	"pgregory.net/rapid"

	"keryx/events"
)

// audit walks a log and fails at the first event that breaks an invariant.
type audit struct {
	rt        *rapid.T
	epoch     events.Epoch
	open      bool
	started   bool
	running   events.TurnID
	ended     map[events.TurnID]bool
	idle      map[events.TurnID]int
	late      map[events.TurnID]int
	stored    events.StoredSessionID
	execEnds  map[events.ExecID]int
	execKnown map[events.ExecID]bool
	attached  bool
	bound     map[events.ExecID]events.ApprovalID // execs that need an approval
	approved  map[events.ApprovalID]events.ApprovalState
	verdicts  map[events.CommandID]int
	invoked   map[events.CommandID]int
}

func checkLog(rt *rapid.T, l *ledger) {
	a := &audit{
		rt: rt, ended: map[events.TurnID]bool{}, idle: map[events.TurnID]int{}, late: map[events.TurnID]int{},
		execEnds: map[events.ExecID]int{}, execKnown: map[events.ExecID]bool{}, bound: map[events.ExecID]events.ApprovalID{},
		approved: map[events.ApprovalID]events.ApprovalState{}, verdicts: map[events.CommandID]int{}, invoked: map[events.CommandID]int{},
	}
	for i, r := range l.records {
		a.position(l.records[:i], r)
		a.event(r, l.data[i])
	}
	for t := range a.ended {
		if a.idle[t] != 1 {
			rt.Fatalf("turn %s has ended and %d session.idle follow", t, a.idle[t])
		}
	}
}

func (a *audit) position(before []events.Record, r events.Record) {
	if want := events.Ordinal(len(before) + 1); r.Ordinal != want {
		a.rt.Fatalf("ordinal %d, want %d", r.Ordinal, want)
	}
	if n := len(before); n > 0 && (r.Time.Before(before[n-1].Time) || r.Sequence <= before[n-1].Sequence) {
		a.rt.Fatalf("%s goes back in time or sequence", r.Type)
	}
}

func (a *audit) need(ok bool, r events.Record, what string) {
	if !ok {
		a.rt.Fatalf("%s at ordinal %d, epoch %d: %s", r.Type, r.Ordinal, r.Epoch, what)
	}
}

func (a *audit) event(r events.Record, data any) {
	switch d := data.(type) {
	case events.SessionRegistered:
		a.need(d.Reopened == (a.epoch > 0) && (d.Carry != nil) == d.Reopened, r, "reopened and carry disagree with the log")
		a.begin(r)
		a.stored = d.Names.StoredSessionID
		a.attached = false
	case events.SessionReset:
		a.begin(r)
		a.stored = ""
		a.attached = d.Carry.Host != nil
	default:
		a.need(r.Epoch == a.epoch, r, "is not in the current epoch")
		a.inEpoch(r, data)
	}
}

func (a *audit) begin(r events.Record) {
	a.need(!a.open, r, "the epoch before is still open")
	a.need(r.Epoch == a.epoch+1, r, "epochs rise by one")
	a.need(a.running == "", r, "a turn runs over the end of its epoch")
	a.epoch, a.open, a.started = r.Epoch, true, false
}

func (a *audit) inEpoch(r events.Record, data any) {
	switch d := data.(type) {
	case events.ExecStarted:
		a.need(a.execKnown[d.Exec] && a.execEnds[d.Exec] == 0, r, "exec is not open")
		a.need(a.mayRun(d.Exec), r, "exec runs without its approval")
	case events.ExecRefused:
		a.endExec(r, d.Exec)
	case events.ExecExited:
		a.need(a.mayRun(d.Exec), r, "exec ran without its approval")
		a.endExec(r, d.Exec)
	case events.ExecLost:
		a.endExec(r, d.Exec)
	case events.ContinuationDiscarded, events.SessionPolicyChanged: // also when its epoch has ended
	case events.TurnReportedLate:
		a.late[d.Turn]++
		a.need(a.ended[d.Turn] && a.late[d.Turn] == 1, r, "late report of a turn that has not ended, or the second")
	default:
		a.need(a.open, r, "the epoch has ended")
		a.whileOpen(r, data)
	}
}

func (a *audit) endExec(r events.Record, id events.ExecID) {
	a.execEnds[id]++
	a.need(a.execKnown[id] && a.execEnds[id] == 1, r, "exec ends twice or was never requested")
}

func (a *audit) whileOpen(r events.Record, data any) {
	switch d := data.(type) {
	case events.SessionFinalized:
		a.need(a.running == "", r, "a turn runs")
		a.closed(r)
		a.open = false
	case events.SessionStarted:
		a.need(!a.started, r, "second in its epoch")
		a.started = true
	case events.SessionAttached:
		a.need(!a.attached, r, "a host is attached")
		a.attached = true
	case events.SessionDetached:
		a.need(a.attached && a.running == "", r, "no host is attached, or a turn runs")
		a.attached = false
	case events.SessionAliased:
		if a.stored == "" {
			a.stored = d.Names.StoredSessionID
		}
	case events.SessionReanchored:
		a.need(d.From == a.stored && d.To != "" && d.To != d.From, r, "lineage is not one chain")
		a.stored = d.To
	case events.SessionIdle:
		a.idle[d.Turn]++
		a.need(a.ended[d.Turn] && a.running == "", r, "its turn has not ended or another runs")
	case events.ExecRequested:
		a.execKnown[d.Exec] = true
		if d.Approval != nil {
			a.bound[d.Exec] = d.Approval.ID
		}
	case events.TurnStarted:
		a.need(a.started && a.attached && a.running == "" && !a.ended[d.Turn], r, "turn begins out of order")
		a.running = d.Turn
	case events.TurnEnded:
		a.need(a.running == d.Turn, r, "turn does not run")
		a.running, a.ended[d.Turn] = "", true
	case events.TurnSteered:
		a.need(a.running == d.Turn, r, "turn does not run")
	case events.ApprovalRequested, events.ApprovalGranted, events.ApprovalDenied, events.ApprovalExpired,
		events.ApprovalConsumed, events.ApprovalInvalidated, events.PolicyAsked, events.PolicyAnswered:
		a.asked(r, data)
	case events.CommandInvoked, events.CommandCompleted, events.CommandFailed:
		a.slash(r, data)
	case events.ContinuationOffered:
		a.need(a.attached && a.running == d.Turn, r, "no free host, or a steer into another turn")
	}
}

// life is what the log says of an item.
type life struct {
	turn                      events.TurnID
	accepted, settled, voided int
	unresolved                bool
	why                       events.ItemState // of the void
}

func (i *life) end(why events.ItemState) { i.voided++; i.why, i.unresolved = why, false }

// checkItems holds every item's life against its receipt.
func checkItems(rt *rapid.T, l *ledger) {
	items := map[events.ReceiptID]*life{}
	each := func(ids []events.ReceiptID, f func(*life)) {
		for _, id := range ids {
			if items[id] == nil {
				rt.Fatalf("item %s was never queued", id)
			}
			f(items[id])
		}
	}
	for _, data := range l.data {
		switch d := data.(type) {
		case events.ContinuationQueued:
			if items[d.Item.Receipt] == nil {
				items[d.Item.Receipt] = &life{}
			}
		case events.TurnStarted:
			each(d.Items, func(i *life) { i.accepted++; i.turn = d.Turn })
		case events.TurnSteered:
			each(d.Items, func(i *life) { i.accepted++; i.turn = d.Turn })
		case events.ContinuationInvalidated:
			each(d.Items, func(i *life) { i.end(events.StateInvalidated) })
		case events.ContinuationExpired:
			each(d.Items, func(i *life) { i.end(events.StateExpired) })
		case events.ContinuationCancelled:
			each(d.Items, func(i *life) { i.end(events.StateCancelled) })
		case events.ContinuationDiscarded:
			each(d.Items, func(i *life) { i.end(events.StateDiscarded) })
		case events.ContinuationRequeued:
			each(d.Items, func(i *life) { i.unresolved = false })
		case events.TurnEnded:
			each(d.Settled, func(i *life) {
				if i.settled++; i.turn != d.Turn {
					rt.Fatalf("turn %s settles an item of turn %s", d.Turn, i.turn)
				}
			})
		case events.SessionFinalized:
			each(d.Invalidated, func(i *life) { i.end(events.StateInvalidated) })
		case events.SessionReset:
			each(d.Dropped, func(i *life) { i.end(events.StateInvalidated) })
		case events.ContinuationUnresolved:
			each(d.Items, func(i *life) { i.unresolved = true })
		}
	}
	for id, i := range items {
		if i.accepted > 1 || i.settled > i.accepted || i.voided > 1 || i.voided+i.accepted > 1 {
			rt.Fatalf("item %s: %+v", id, *i)
		}
		checkReceipt(rt, l, id, *i)
	}
}

func checkReceipt(rt *rapid.T, l *ledger, id events.ReceiptID, i life) {
	want := events.StateQueued
	waits := false
	for _, it := range l.state.Queue.Waiting() {
		waits = waits || it.Receipt == id
	}
	switch {
	case i.settled == 1:
		want = events.StateSettled
	case i.accepted == 1:
		want = events.StateAccepted
	case i.voided == 1:
		want = i.why
	case i.unresolved:
		want = events.StateUnresolved
	}
	r, _ := l.state.Receipt(id)
	if r.State == events.StateOffered {
		r.State = events.StateQueued
	}
	if r.State != want || waits != (want == events.StateQueued) {
		rt.Fatalf("item %s is %s, waits %v; the log says %s", id, r.State, waits, want)
	}
}
