// Package platform is what a chat platform is to the bridge: one small interface, which
// every platform implements, and which package platformtest checks.
//
// A platform knows how to speak to the other side, and nothing of sessions, retries or
// records: package bridge splits, orders, retries and records, one account at a time.
//
// # Rules of a Platform
//
// It tells the other side that a message was taken only after [Inbox.Receive] has returned
// nil, so that one which was not taken comes again. It never calls Receive for one place
// concurrently. [Platform.Send] tries once and says what came of it. It holds no lock while
// it waits for the other side.
package platform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"keryx/events"
	"keryx/internal/gateway/split"
)

// Traits are what a platform can do.
type Traits struct {
	// Limit is what one message can hold.
	Limit split.Limit
	// Mute is true if nothing can be said there: messages only come in.
	Mute bool
}

// Platform is a connection to a chat platform as one account. Its methods are safe for
// concurrent use.
type Platform interface {
	// Kind names the platform, e.g. "stdio". It is part of every session's key.
	Kind() string
	// Traits may be called at any time; Send is given what fits the last answer.
	Traits() Traits
	// Serve takes messages in until ctx ends, and returns nil then. It is called again, one
	// call at a time, after an error or when the account's lease is held again.
	Serve(ctx context.Context, in Inbox) error
	// Send says one part and returns the id that the platform gave it, if any. The error is
	// *[LaterError] or *[FinalError] if the platform says so; any other is tried again.
	Send(ctx context.Context, m Outgoing) (message string, err error)
}

// Inbox takes what comes in; package bridge implements it.
type Inbox interface {
	// Receive returns when the bus has the message. What comes again is taken once.
	Receive(ctx context.Context, m Incoming) (Taken, error)
	// Missed says that messages between two times can no longer be had.
	Missed(ctx context.Context, gap Gap) error
	// Cursor is that of the last message taken, of whatever bridge; empty: none.
	Cursor() string
}

// Incoming is a message of the platform.
type Incoming struct {
	// Message is the platform's id of it, unique in its chat.
	Message string
	Place   events.Place
	// User is who says it, as the platform knows them.
	User string
	Text string
	// Data is for the session's host; nil for none. It is JSON.
	Data events.Raw
	// Cursor is where to go on after a lost connection; empty: the platform has no such.
	Cursor string
	// Own is true if the platform says that the account itself wrote it.
	Own bool
}

// Taken says what became of an incoming message.
type Taken struct {
	Session events.SessionID
	Receipt events.ReceiptID
	// Duplicate is true if it was taken before, Echo if it is an own message that came
	// back, and Command if it was for the bridge itself: there is no receipt then.
	Duplicate, Echo, Command bool
}

// Gap is a time of which the platform tells nothing any more.
type Gap struct {
	Place    events.Place
	From, To time.Time
	Reason   string
}

// Outgoing is one part of what is said.
type Outgoing struct {
	// ID is stable: a part that is sent again has the same.
	ID          string
	Place       events.Place
	Text        string
	Part, Parts int
	Session     events.SessionID
}

// LaterError says that the platform wants a pause. Nothing is sent to the place before.
type LaterError struct {
	After time.Duration
	Err   error
}

// Error implements error.
func (e *LaterError) Error() string { return fmt.Sprintf("not before %s: %v", e.After, e.Err) }

// Unwrap returns what the platform said.
func (e *LaterError) Unwrap() error { return e.Err }

// FinalError says that sending again cannot help.
type FinalError struct{ Err error }

// Error implements error.
func (e *FinalError) Error() string { return "refused for good: " + e.Err.Error() }

// Unwrap returns what the platform said.
func (e *FinalError) Unwrap() error { return e.Err }

// ErrNotServing says that this bridge does not speak for the account now: another one
// does, or the bus is away. The same may succeed in a moment.
var ErrNotServing = errors.New("the account is not served here now")
