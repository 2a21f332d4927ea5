package lifecycle

import (
	"time"

	"keryx/events"
	"keryx/internal/approvals"
	"keryx/internal/idle"
)

// Position is how far a fold has come.
type Position struct {
	LastSequence events.Sequence
	LastOrdinal  events.Ordinal
	LastTime     time.Time
}

// Begun is the place of an epoch's first event.
type Begun struct {
	Sequence events.Sequence
	At       time.Time
}

// Identity is what a session is, over its epochs.
type Identity struct {
	Profile events.Profile
	Session events.SessionID
	// Owner registered the session first.
	Owner  events.PrincipalName
	Policy events.Policy
	// Names are in the order in which they were given.
	Names                 []events.OwnedName
	Home, Source, Surface string
	// Lineage is that of the open epoch.
	Lineage   []events.Anchor
	CreatedAt time.Time
}

// State is a session as its log says. The zero value is a session nobody knows. It is
// changed by [Fold] alone and is not safe for concurrent use.
type State struct {
	Position
	Identity
	// Epoch is the open one or, when Finalized, the one that ended last.
	Epoch     events.Epoch
	Finalized bool
	// Begun is the first event of that epoch; a fold may begin there.
	Begun Begun
	// Removed sessions are those of which only the event is kept that ended them.
	Removed bool
	// Reason is why the epoch ended.
	Reason string
	// Started is true once the epoch's first turn has begun.
	Started bool
	// Host drives the session; nil when detached.
	Host *events.AttachedHost
	// Fence is the highest ever given.
	Fence events.Fence
	// Turns counts turns over all epochs.
	Turns int
	Queue idle.Queue

	running   events.TurnID
	turns     map[events.TurnID]TurnEntry
	ended     []events.TurnID // of turns, the oldest first
	whole     bool            // nothing is forgotten
	execs     execs
	approvals approvals.Book
	questions questions
	// invocations are slash commands that were given.
	invocations invocations
	exits       []events.Item // ends of background execs that are not in the queue yet
	answers     answers
	clocks      clocks
	lastHost    *events.AttachedHost // the one before, for telling it that it was detached
}

// clocks are what owed work is measured from.
type clocks struct {
	activity time.Time // last registration, message, or end of a turn or exec
	hostLost time.Time // since when no host came back; zero when none was lost
	idle     *events.SessionIdle
	lastTurn events.TurnID   // the turn that ended last, in this epoch
	epoch    events.Sequence // of the event that opened the epoch
	moved    events.Sequence // source or surface changed at this one or after it; 0 for never
}

// TurnEntry is what the fold keeps of a turn; texts are in the log at its sequences.
type TurnEntry struct {
	Turn     events.TurnID
	Epoch    events.Epoch
	Offer    events.OfferID
	Items    []events.ReceiptID
	Steers   []events.OfferID // taken while it ran
	Host     events.PrincipalName
	Instance events.Instance
	Fence    events.Fence
	TaskID   events.TaskID
	// Outcome is empty while the turn runs.
	Outcome   events.Outcome
	StartedAt time.Time
	EndedAt   time.Time
	// The sequences of the turn's events; zero for none.
	StartSequence, EndSequence, LateSequence events.Sequence
}

// Running reports whether the turn has not ended.
func (t TurnEntry) Running() bool { return t.Outcome == "" }

// Exists reports whether the session is known.
func (s *State) Exists() bool { return s.Epoch > 0 }

// Open reports whether an epoch is open.
func (s *State) Open() bool { return s.Exists() && !s.Finalized }

// Running returns the running turn, or nil.
func (s *State) Running() *TurnEntry {
	t, ok := s.turns[s.running]
	if !ok || s.running == "" {
		return nil
	}
	return &t
}

// TurnEntry returns what is known of a turn: one that runs, or one of the [KeptTurns]
// that ended last.
func (s *State) TurnEntry(id events.TurnID) (TurnEntry, bool) {
	t, ok := s.turns[id]
	return t, ok
}

// Receipt returns where an item stands, unless it ended so long ago that only the log
// knows.
func (s *State) Receipt(id events.ReceiptID) (events.Receipt, bool) {
	return s.Queue.Receipt(s.Session, id)
}

// OpenOffer returns the offer that waits for its host's answer.
func (s *State) OpenOffer() (idle.Offer, bool) {
	o, _, ok := s.Queue.Open()
	return o, ok
}

// Answer returns what a command was answered. The bytes are the same at each call.
func (s *State) Answer(id events.CommandID) (events.Raw, bool) { return s.answers.get(id) }

// hostCan reports whether the attached host declared a capability.
func (s *State) hostCan(want events.Capability) bool {
	if s.Host == nil {
		return false
	}
	for _, c := range s.Host.Capabilities {
		if c == want {
			return true
		}
	}
	return false
}
