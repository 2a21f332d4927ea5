package lifecycle

import (
	"slices"
	"time"

	"keryx/events"
)

// Brief is what has to be known of a session whose state is not in memory. It may be
// kept, but is never taken for the log.
type Brief struct {
	Summary events.SessionSummary
	// Host is the attached host; nil when detached.
	Host *events.AttachedHost
	// Next is when the session owes something by itself; zero for never. A time that has
	// passed is owed now.
	Next time.Time
	// Busy sessions have told or are to tell somebody something, and belong into memory:
	// a turn runs, an offer is open, a question or a slash command is open, an exec has not ended or its end
	// is not told.
	Busy bool
	// BusLife sessions are open and live as long as the bus.
	BusLife bool
	// Begun is where the epoch begins.
	Begun Begun
}

// Brief returns what has to be known of s.
func (s *State) Brief(now time.Time) Brief {
	_, offering := s.OpenOffer()
	d, next := Owed(s, now, func() string { return "" })
	if len(d.Drafts) > 0 {
		next = now
	}
	b := Brief{
		Begun:   s.Begun,
		Summary: s.Summary(), Next: next,
		Busy:    offering || s.running != "" || len(s.execs.open) > 0 || len(s.exits) > 0 || len(s.questions.open) > 0 || len(s.invocations.Open) > 0 || len(d.Drafts) > 0,
		BusLife: s.Open() && s.Policy.Lifetime == events.LifetimeBus,
	}
	if s.Host != nil {
		h := *s.Host
		h.Capabilities = slices.Clone(h.Capabilities)
		b.Host = &h
	}
	return b
}

// WholeTurns reports whether every turn that ever started is in memory.
func (s *State) WholeTurns() bool { return len(s.turns) >= s.Turns }
