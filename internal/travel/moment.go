package travel

import (
	"time"

	"keryx/events"
)

// Moment is a place in the record of a scope: an ordinal, a sequence or a time. What is
// set first in this order counts. The zero value is after the newest event.
type Moment struct {
	// Ordinal is after the event with this ordinal.
	Ordinal events.Ordinal
	// Sequence is after the last event of the scope that is not behind this sequence of
	// the log, which may be another scope's.
	Sequence events.Sequence
	// Time is after the last event that is not later; several at exactly this time are
	// all before the moment.
	Time time.Time
}

// Now reports whether m is after the newest event.
func (m Moment) Now() bool { return m.Ordinal == 0 && m.Sequence == 0 && m.Time.IsZero() }

// Before reports whether m is before r: r is not part of what was there at m.
func (m Moment) Before(r events.Record) bool {
	switch {
	case m.Ordinal > 0:
		return r.Ordinal > m.Ordinal
	case m.Sequence > 0:
		return r.Sequence > m.Sequence
	}
	return !m.Time.IsZero() && r.Time.After(m.Time)
}

// String returns the moment in words.
func (m Moment) String() string {
	switch {
	case m.Ordinal > 0:
		return "ordinal " + m.Ordinal.String()
	case m.Sequence > 0:
		return "sequence " + m.Sequence.String()
	case !m.Time.IsZero():
		return m.Time.Format(time.RFC3339Nano)
	}
	return "now"
}
