package gateway

import (
	"time"

	"keryx/events"
)

// Front is told what happens in a chat, from one goroutine.
type Front interface {
	// Message: somebody said something; own messages are told too.
	Message(m Message)
	// Started: a turn has begun.
	Started(t Turn)
	// Piece is the next part of a running turn's reply.
	Piece(t Turn, text string)
	// Ended: a turn is over.
	Ended(e Ended)
	// Notice is a line for the person, without its end.
	Notice(text string)
	// State is told when it changes, and once a second while a turn runs.
	State(s State)
}

// Message is something said in the session.
type Message struct {
	Sender events.PrincipalName
	Text   string
	Own    bool
	Kind   events.ItemKind
	// Hosted is true while a host drives the session, which will answer.
	Hosted bool
}

// Turn is a run of the agent.
type Turn struct {
	ID   events.TurnID
	Host events.PrincipalName
	// Own is true when it answers an own message.
	Own   bool
	Began time.Time
}

// Ended tells how a turn ended.
type Ended struct {
	Turn
	Outcome events.Outcome
	// Reply is the whole reply, and Rest what of it was not given in pieces. Whole is
	// true when Rest cannot be joined to the pieces and is the whole reply once more.
	Reply, Rest string
	Whole       bool
	// Truncated is true when the record's reply lacks its middle.
	Truncated bool
	// Error says what went wrong when the outcome is not completed.
	Error string
	// Late is true for what a host reported after the turn was given up as lost.
	Late bool
}

// Activity is what a session does, in one word.
type Activity string

// What a session does.
const (
	Idle        Activity = "idle"
	Running     Activity = "running"
	Queued      Activity = "queued"             // an own message waits, a host is there
	Waiting     Activity = "waiting for a host" // an own message waits, no host is there
	Unreachable Activity = "bus unreachable"
)

// State is the session's state as the chat knows it.
type State struct {
	Activity Activity
	// For is how long a turn has been running; 0 otherwise.
	For time.Duration
	// Pending is how many own messages are not settled.
	Pending int
}
