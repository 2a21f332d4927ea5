package client

import (
	"slices"

	"keryx/events"
)

// advance brings a receipt to where an event puts its item, and reports whether the event
// is about it. Events come in their order, each once.
func advance(r *events.Receipt, rec events.Record) bool {
	move, ok := moves[rec.Type]
	return ok && move(r, rec)
}

// moves has one entry for each type of event that changes a receipt.
var moves = map[events.Type]func(*events.Receipt, events.Record) bool{
	events.TypeContinuationQueued: about(
		func(r *events.Receipt, d events.ContinuationQueued) bool { return d.Item.Receipt == r.ID },
		func(r *events.Receipt, d events.ContinuationQueued) {
			r.State, r.Outcome, r.Turn, r.Reason = events.StateQueued, "", "", ""
			r.Mode, r.DowngradedFrom = d.Item.Mode, d.Item.Asked
		}),
	events.TypeContinuationDowngraded: about(
		func(r *events.Receipt, d events.ContinuationDowngraded) bool { return d.Receipt == r.ID },
		func(r *events.Receipt, d events.ContinuationDowngraded) { r.Mode, r.DowngradedFrom = d.To, d.From }),
	events.TypeContinuationOffered: among(
		func(d events.ContinuationOffered) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, _ events.ContinuationOffered) { r.State = events.StateOffered }),
	events.TypeContinuationRequeued: among(
		func(d events.ContinuationRequeued) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, _ events.ContinuationRequeued) { r.State, r.Reason = events.StateQueued, "" }),
	events.TypeContinuationHeld: among(
		func(d events.ContinuationHeld) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, d events.ContinuationHeld) { r.State, r.Reason = events.StateQueued, d.Reason }),
	events.TypeContinuationReleased: among(
		func(d events.ContinuationReleased) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, _ events.ContinuationReleased) { r.State, r.Reason = events.StateQueued, "" }),
	events.TypeContinuationUnresolved: among(
		func(d events.ContinuationUnresolved) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, d events.ContinuationUnresolved) {
			r.State, r.Reason = events.StateUnresolved, d.Reason
		}),
	events.TypeContinuationInvalidated: among(
		func(d events.ContinuationInvalidated) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, d events.ContinuationInvalidated) {
			r.State, r.Reason = events.StateInvalidated, d.Reason
		}),
	events.TypeContinuationExpired: among(
		func(d events.ContinuationExpired) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, _ events.ContinuationExpired) {
			r.State, r.Reason = events.StateExpired, ""
		}),
	events.TypeContinuationCancelled: among(
		func(d events.ContinuationCancelled) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, d events.ContinuationCancelled) {
			r.State, r.Reason = events.StateCancelled, d.Reason
		}),
	events.TypeContinuationDiscarded: among(
		func(d events.ContinuationDiscarded) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, d events.ContinuationDiscarded) {
			r.State, r.Reason = events.StateDiscarded, d.Reason
		}),
	events.TypeTurnStarted: among(
		func(d events.TurnStarted) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, d events.TurnStarted) {
			r.State, r.Turn, r.Reason = events.StateAccepted, d.Turn, ""
		}),
	events.TypeTurnSteered: among(
		func(d events.TurnSteered) []events.ReceiptID { return d.Items },
		func(r *events.Receipt, d events.TurnSteered) {
			r.State, r.Turn, r.Reason = events.StateAccepted, d.Turn, ""
		}),
	events.TypeTurnEnded: among(
		func(d events.TurnEnded) []events.ReceiptID { return d.Settled },
		func(r *events.Receipt, d events.TurnEnded) {
			r.State, r.Turn, r.Outcome = events.StateSettled, d.Turn, d.Outcome
		}),
	events.TypeTurnReportedLate: about(
		func(r *events.Receipt, d events.TurnReportedLate) bool { return r.Turn != "" && d.Turn == r.Turn },
		func(r *events.Receipt, d events.TurnReportedLate) { r.Late = d.Outcome }),
	events.TypeSessionFinalized: among(
		func(d events.SessionFinalized) []events.ReceiptID { return d.Invalidated },
		func(r *events.Receipt, d events.SessionFinalized) {
			r.State, r.Reason = events.StateInvalidated, "session finalized: "+d.Reason
		}),
	events.TypeSessionReset: among(
		func(d events.SessionReset) []events.ReceiptID { return d.Dropped },
		func(r *events.Receipt, d events.SessionReset) {
			r.State, r.Reason = events.StateInvalidated, "dropped by reset: "+d.Reason
		}),
}

func among[T any](items func(T) []events.ReceiptID, move func(*events.Receipt, T)) func(*events.Receipt, events.Record) bool {
	return about(func(r *events.Receipt, d T) bool { return slices.Contains(items(d), r.ID) }, move)
}

func about[T any](is func(*events.Receipt, T) bool, move func(*events.Receipt, T)) func(*events.Receipt, events.Record) bool {
	return func(r *events.Receipt, rec events.Record) bool {
		d, err := events.DataOf[T](rec)
		if err != nil || !is(r, d) {
			return false
		}
		move(r, d)
		return true
	}
}
