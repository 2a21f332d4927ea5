// Package idle holds the rules by which messages wait for a session and are
// delivered into it. It is pure: no input or output, no clock, no goroutine.
//
// # Model
//
// A [Queue] is folded from events, inside the state of package lifecycle. An item
// moves queued -> offered -> accepted -> settled. A declined or withdrawn offer puts
// its items back to the head. An offer whose host cannot say whether it took the
// items leaves them unresolved: they are never offered again by guess, and block
// nothing else. Items that no longer fit their session are invalidated.
//
// At most one offer is open. It holds one item, or the run of items of mode merge at
// the head; during a turn it is a steer, an item for that turn. Items that are not due
// yet, and automatic ones over the budget, are kept apart and hold up nothing; an event
// releases them.
//
// An item that is bound to something is marked as unfit by the change itself, so that
// changing back does not revive it, whenever the event that invalidates it is written.
//
// # Guaranteed
//
// Each item is in one state. It is accepted at most once and ends at most once: what
// has ended never waits again, whatever events follow. Order is the order of
// queueing, except that what comes back goes to the head.
//
// A receipt is known for as long as the log behind the fold reaches back. The body of
// an item is kept only while the item may still be delivered.
//
// # Not guaranteed
//
// The queue trusts its events: whether an offer may be made or accepted is decided in
// package lifecycle. A Queue is not safe for concurrent use.
package idle
