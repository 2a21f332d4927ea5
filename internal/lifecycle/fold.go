package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"keryx/events"
)

// HoleError says that an event could not be applied: its type is unknown to this
// version or its data cannot be read. The state is as if it had not happened.
type HoleError struct {
	Sequence events.Sequence
	Ordinal  events.Ordinal
	Type     events.Type
	Err      error
}

// Error implements error.
func (e *HoleError) Error() string {
	return fmt.Sprintf("fold %s at sequence %d, ordinal %d: %v", e.Type, e.Sequence, e.Ordinal, e.Err)
}

// Unwrap returns the cause.
func (e *HoleError) Unwrap() error { return e.Err }

var (
	// ErrUnknownEvent is wrapped for a type that this version does not know.
	ErrUnknownEvent = errors.New("unknown type of event")
	// ErrNoEpoch is wrapped for an event before the first of any epoch.
	ErrNoEpoch = errors.New("no epoch has begun")
)

// Fold applies one event to s. It is deterministic and never panics. Its only error is
// *[HoleError]; the position advances all the same.
func Fold(s *State, r events.Record) error {
	err := s.apply(r)
	s.LastSequence = r.Sequence
	s.LastOrdinal = or(r.Ordinal, s.LastOrdinal+1) // the ordinal of a hole may be unreadable
	if r.Time.After(s.LastTime) {
		s.LastTime = r.Time
	}
	if err != nil {
		return &HoleError{Sequence: r.Sequence, Ordinal: r.Ordinal, Type: r.Type, Err: err}
	}
	return nil
}

func (s *State) apply(r events.Record) error {
	fold, ok := folds[r.Type]
	if !ok {
		return ErrUnknownEvent
	}
	switch {
	case s.Exists() || r.Type == events.TypeSessionRegistered || r.Type == events.TypeSessionReset:
	case r.Type == events.TypeSessionFinalized: // all that is kept of a session that was removed
		s.Profile, s.Session, s.Epoch, s.Removed = r.Profile, events.SessionID(r.Scope), max(r.Epoch, 1), true
	default:
		return ErrNoEpoch
	}
	return fold(s, r)
}

// with decodes the data before it lets f touch the state.
func with[T any](f func(*State, events.Record, T)) func(*State, events.Record) error {
	return func(s *State, r events.Record) error {
		d, err := events.DataOf[T](r)
		if err != nil {
			return err
		}
		f(s, r, d)
		return nil
	}
}

var folds = map[events.Type]func(*State, events.Record) error{
	events.TypeSessionRegistered:       with((*State).foldRegistered),
	events.TypeSessionAliased:          with((*State).foldAliased),
	events.TypeSessionStarted:          with((*State).foldStarted),
	events.TypeSessionAttached:         with((*State).foldAttached),
	events.TypeSessionDetached:         with((*State).foldDetached),
	events.TypeSessionIdle:             with((*State).foldIdle),
	events.TypeSessionReanchored:       with((*State).foldReanchored),
	events.TypeSessionReset:            with((*State).foldReset),
	events.TypeSessionFinalized:        with((*State).foldFinalized),
	events.TypeSessionPolicyChanged:    with((*State).foldPolicyChanged),
	events.TypeApprovalRequested:       with((*State).foldApprovalRequested),
	events.TypeApprovalGranted:         with((*State).foldApprovalGranted),
	events.TypeApprovalDenied:          with((*State).foldApprovalDenied),
	events.TypeApprovalExpired:         with((*State).foldApprovalExpired),
	events.TypeApprovalConsumed:        with((*State).foldApprovalConsumed),
	events.TypeApprovalInvalidated:     with((*State).foldApprovalInvalidated),
	events.TypePolicyAsked:             with((*State).foldPolicyAsked),
	events.TypePolicyVoted:             with((*State).foldPolicyVoted),
	events.TypePolicyAnswered:          with((*State).foldPolicyAnswered),
	events.TypeCommandInvoked:          with((*State).foldCommandInvoked),
	events.TypeCommandCompleted:        with((*State).foldCommandCompleted),
	events.TypeCommandFailed:           with((*State).foldCommandFailed),
	events.TypeTurnStarted:             with((*State).foldTurnStarted),
	events.TypeTurnSteered:             with((*State).foldTurnSteered),
	events.TypeTurnEnded:               with((*State).foldTurnEnded),
	events.TypeTurnReportedLate:        with((*State).foldReportedLate),
	events.TypeContinuationQueued:      with((*State).foldQueued),
	events.TypeContinuationOffered:     with((*State).foldOffered),
	events.TypeContinuationRequeued:    with((*State).foldRequeued),
	events.TypeContinuationUnresolved:  with((*State).foldUnresolved),
	events.TypeContinuationInvalidated: with((*State).foldInvalidated),
	events.TypeContinuationEdited:      with((*State).foldEdited),
	events.TypeContinuationDowngraded:  with((*State).foldDowngraded),
	events.TypeContinuationHeld:        with((*State).foldHeld),
	events.TypeContinuationReleased:    with((*State).foldReleased),
	events.TypeContinuationExpired:     with((*State).foldExpired),
	events.TypeContinuationCancelled:   with((*State).foldCancelled),
	events.TypeContinuationDiscarded:   with((*State).foldDiscarded),
	events.TypeExecRequested:           with((*State).foldExecRequested),
	events.TypeExecStarted:             with((*State).foldExecStarted),
	events.TypeExecRefused:             with((*State).foldExecRefused),
	events.TypeExecExited:              with((*State).foldExecExited),
	events.TypeExecLost:                with((*State).foldExecLost),
}

// ownReasons are those by which only the bus itself ends an epoch: such an event is
// nobody's answer.
var ownReasons = []string{
	events.ReasonIdleExpired, events.ReasonHostGone, events.ReasonBusStopped, events.ReasonBusRestarted,
}

func ownReason(reason string) bool { return slices.Contains(ownReasons, strings.TrimSpace(reason)) }
