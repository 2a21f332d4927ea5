package replay

import (
	"time"

	"keryx/events"
)

// maxOpenTurns bounds what a story remembers; a reader of very many sessions at once
// loses durations, nothing else.
const maxOpenTurns = 100_000

// story is what was told before: when turns began. The zero value has heard nothing.
type story struct {
	turns map[events.TurnID]time.Time
}

// tell returns the one thing that matters about r, and how it stands out. The text is
// as the event has it: not yet fit for a terminal.
func (s *story) tell(r events.Record) (string, tone) {
	f, ok := tellers[r.Type]
	if !ok {
		return "a type this version does not know: " + string(r.Data), warn
	}
	text, t, err := f(s, r)
	if err != nil {
		return "data cannot be decoded: " + err.Error(), bad
	}
	return text, t
}

func (s *story) begin(turn events.TurnID, at time.Time) {
	if s.turns == nil {
		s.turns = make(map[events.TurnID]time.Time)
	}
	if len(s.turns) < maxOpenTurns {
		s.turns[turn] = at
	}
}

// end returns " in <time>" since the turn began, or "" if it was not seen to begin.
func (s *story) end(turn events.TurnID, at time.Time) string {
	began, ok := s.turns[turn]
	if !ok {
		return ""
	}
	delete(s.turns, turn)
	return " in " + duration(at.Sub(began))
}

// duration rounds to what a person reads.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func milliseconds(ms int64) string { return duration(time.Duration(ms) * time.Millisecond) }

// teller tells one type of event.
type teller func(s *story, r events.Record) (string, tone, error)

// of makes a teller of a function of the type's data.
func of[T any](f func(T) (string, tone)) teller {
	return func(_ *story, r events.Record) (string, tone, error) {
		d, err := events.DataOf[T](r)
		if err != nil {
			return "", plain, err
		}
		text, t := f(d)
		return text, t, nil
	}
}

// during makes a teller of a function that also needs what was told before.
func during[T any](f func(*story, events.Record, T) (string, tone)) teller {
	return func(s *story, r events.Record) (string, tone, error) {
		d, err := events.DataOf[T](r)
		if err != nil {
			return "", plain, err
		}
		text, t := f(s, r, d)
		return text, t, nil
	}
}

// tellers has one teller per event type of the catalogue; a test compares them.
var tellers = map[events.Type]teller{
	events.TypeSessionRegistered: of(tellRegistered),
	events.TypeSessionAliased:    of(tellAliased),
	events.TypeSessionStarted:    of(tellStarted),
	events.TypeSessionAttached:   of(tellAttached),
	events.TypeSessionDetached:   of(tellDetached),
	events.TypeSessionIdle:       of(tellIdle),
	events.TypeSessionReanchored: of(tellReanchored),
	events.TypeSessionReset:      during(tellReset),
	events.TypeSessionFinalized:  of(tellFinalized),
	events.TypeSessionForgotten:  of(tellForgotten),

	events.TypeTurnStarted:      during(tellTurnStarted),
	events.TypeTurnSteered:      of(tellSteered),
	events.TypeTurnEnded:        during(tellTurnEnded),
	events.TypeTurnReportedLate: of(tellReportedLate),

	events.TypeContinuationQueued:      of(tellQueued),
	events.TypeContinuationOffered:     of(tellOffered),
	events.TypeContinuationRequeued:    of(tellRequeued),
	events.TypeContinuationUnresolved:  of(tellUnresolved),
	events.TypeContinuationInvalidated: of(tellInvalidated),
	events.TypeContinuationEdited:      of(tellEdited),
	events.TypeContinuationDowngraded:  of(tellDowngraded),
	events.TypeContinuationHeld:        of(tellHeld),
	events.TypeContinuationReleased:    of(tellReleased),
	events.TypeContinuationExpired:     of(tellExpired),
	events.TypeContinuationCancelled:   of(tellCancelled),
	events.TypeContinuationDiscarded:   of(tellDiscarded),

	events.TypeExecRequested: of(tellExecRequested),
	events.TypeExecStarted:   of(tellExecStarted),
	events.TypeExecRefused:   of(tellExecRefused),
	events.TypeExecExited:    of(tellExecExited),
	events.TypeExecLost:      of(tellExecLost),

	events.TypeSessionPolicyChanged: of(tellPolicyChanged),
	events.TypeApprovalRequested:    of(tellApprovalRequested),
	events.TypeApprovalGranted:      of(tellApprovalGranted),
	events.TypeApprovalDenied:       of(tellApprovalDenied),
	events.TypeApprovalExpired:      of(tellApprovalExpired),
	events.TypeApprovalConsumed:     of(tellApprovalConsumed),
	events.TypeApprovalInvalidated:  of(tellApprovalInvalidated),
	events.TypePolicyAsked:          of(tellPolicyAsked),
	events.TypePolicyVoted:          of(tellPolicyVoted),
	events.TypePolicyAnswered:       of(tellPolicyAnswered),
	events.TypeCommandInvoked:       of(tellCommandInvoked),
	events.TypeCommandCompleted:     of(tellCommandCompleted),
	events.TypeCommandFailed:        of(tellCommandFailed),
	events.TypeHandlerRegistered:    of(tellHandlerRegistered),

	events.TypeTargetRegistered:     of(tellTargetRegistered),
	events.TypeTargetReported:       of(tellTargetReported),
	events.TypeTargetAttached:       of(tellTargetAttached),
	events.TypeTargetDetached:       of(tellTargetDetached),
	events.TypeTargetWithdrawn:      of(tellTargetWithdrawn),
	events.TypeTokenAdded:           of(tellTokenAdded),
	events.TypeTokenRevoked:         of(tellTokenRevoked),
	events.TypeLeaseRevoked:         of(tellLeaseRevoked),
	events.TypeLeaseTakenOver:       of(tellLeaseTakenOver),
	events.TypeSessionImported:      of(tellImported),
	events.TypeAuditRefused:         of(tellRefused),
	events.TypeStoreRegressed:       of(tellRegressed),
	events.TypeTargetControlChanged: of(tellControlChanged),

	events.TypePackageAdded:    of(tellPackageAdded),
	events.TypePackageEnabled:  of(tellPackageEnabled),
	events.TypePackageDisabled: of(tellPackageDisabled),
	events.TypePackageRemoved:  of(tellPackageRemoved),

	events.TypeSetupPlanned:         of(tellSetupPlanned),
	events.TypeSetupConsented:       of(tellSetupConsented),
	events.TypeSetupStarted:         of(tellSetupStarted),
	events.TypeSetupProgressed:      of(tellSetupProgressed),
	events.TypeSetupSucceeded:       of(tellSetupSucceeded),
	events.TypeSetupFailed:          of(tellSetupFailed),
	events.TypeSetupCancelRequested: of(tellSetupCancelRequested),
	events.TypeSetupCancelled:       of(tellSetupCancelled),
	events.TypeSetupNotified:        of(tellSetupNotified),
	events.TypeGatewayReceived:      of(tellReceived),
	events.TypeGatewaySent:          of(tellSent),
	events.TypeGatewayDelayed:       of(tellDelayed),
	events.TypeGatewayDropped:       of(tellDropped),
}
