package lifecycle

import (
	"time"

	"keryx/events"
)

// NameHit is what a look-up of a name found.
type NameHit struct {
	Name     events.Name
	Record   *events.NameRecord // nil: free
	Sequence events.Sequence
}

// Command is something to decide on.
type Command struct {
	ID     events.CommandID
	Caller events.Principal
	Type   events.Type
	// Data is the command's struct by value, or one of the authority's own below.
	Data any
	Now  time.Time
	// Sent is the command's own time; zero if it has none.
	Sent time.Time
	// Session is the one the command resolved to, or a fresh id.
	Session events.SessionID
	// Hits are the look-ups of the names that the command gives.
	Hits []NameHit
	// Via is the name that To resolved through; nil for a session id.
	Via *events.OwnedName
	// Place is where the exec of the command is to run.
	Place Place
	// Judges are registered to be asked before a tool runs.
	Judges []events.Judge
	// Handler carries out the slash command of the command, and By is the role that counts
	// for it: that of the token for which the caller acts, if it does.
	Handler HandlerPlace
	By      events.Role
	// DefaultHosts are the profile's, for sessions that name none.
	DefaultHosts []events.PrincipalName
	Generation   uint64
	// Mint returns a fresh ULID.
	Mint func() string
}

// What the authority decides by itself, with the caller events.AuthorityName.
type (
	// HostLost says that the lease of the attached host instance ran out.
	HostLost struct{ Instance events.Instance }
	// ExecutorLost says that an executor instance has lost a target for good.
	ExecutorLost struct {
		Executor events.PrincipalName
		Instance events.Instance
		Target   events.TargetName // empty: each that it had
		Reason   string
	}
	// HandlerLost says that a handler's process is gone, or no longer known to live.
	HandlerLost struct{ Handler events.Handler }
	// TurnTimeout says that an interrupted turn did not end in time.
	TurnTimeout struct{ Turn events.TurnID }
	// SetupDone says that a setup has succeeded for which this session waits. It is told
	// once, and not at all when what the session was has changed since: see [Unfit].
	SetupDone struct {
		Run  events.RunID
		Ask  events.SetupAsk
		Body events.Body
	}
	// BusStopped says that the bus shuts down cleanly.
	BusStopped struct{}
	// BusRestarted says that the bus starts and found the session left over.
	BusRestarted struct{}
)

// Draft is an event to be appended.
type Draft struct {
	Type         events.Type
	Data         any
	Epoch        events.Epoch
	Turn         events.TurnID
	SessionFence events.Fence
	LeaseFence   events.Fence
	// Own is true for what the authority does by itself on the way to a command's
	// event: its source is the authority and it has no causation.
	Own bool
}

// Decision is what a command comes to. The zero value is nothing to do.
type Decision struct {
	// Drafts are to be appended: one, or several as an atomic batch.
	Drafts []Draft
	// Names are to be written in the same batch, with the expectations of Hits.
	Names []events.NameRecord
	// Again says: after folding, decide the same command again.
	Again bool
	// Wait says: the answer comes with a later event, to be read by [State.Answer].
	Wait bool
	// Answer is set when there is nothing to append.
	Answer events.Raw
	// Interrupt says: tell the host, wait for the turn's end, then decide again (see
	// [Command.Pinned]).
	Interrupt *Interruption
	// Effects are to be done although nothing is appended.
	Effects []Effect
}

// Interruption names the turn that must end before a command can be decided.
type Interruption struct {
	Turn     events.TurnID
	Host     events.PrincipalName
	Instance events.Instance
	Reason   string
}

// Pinned returns c as it is to be decided again after the interrupted turn's end: an
// interrupt that named no turn now means this one and hits no other.
func (c Command) Pinned(i Interruption) Command {
	if d, ok := c.Data.(events.Interrupt); ok && d.Turn == "" {
		d.Turn = i.Turn
		c.Data = d
	}
	return c
}

func (c Command) own() bool { return c.Caller.Name == events.AuthorityName }

func answered(v any) (Decision, error) { return Decision{Answer: encode(v)}, nil }

func (s *State) draft(t events.Type, data any) Draft {
	d := Draft{Type: t, Data: data, Epoch: s.Epoch}
	if s.Host != nil {
		d.SessionFence = s.Host.Fence
	}
	return d
}

func one(d Draft) (Decision, error) { return Decision{Drafts: []Draft{d}}, nil }

// step is a decision on the way to the command's own event.
func step(d Draft) (Decision, error) { return Decision{Drafts: []Draft{d}, Again: true}, nil }
