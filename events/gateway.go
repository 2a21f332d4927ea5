package events

import (
	"strings"
	"time"
)

// AccountName names an account at a chat platform, such as one bot, within a profile: a
// slug like [Profile]. Its lease is of kind account, its record has the scope
// account-<name>.
type AccountName string

// Validate returns an error wrapping [ErrBadID] unless n is a slug.
func (n AccountName) Validate() error { return match("account", string(n), slugPattern) }

// Scope returns the log scope of what an account received and sent.
func (n AccountName) Scope() Scope { return Scope(accountPrefix + n) }

// accountPrefix begins the scope of an account.
const accountPrefix = "account-"

// Account returns the account of a scope; ok is false for scopes of other things.
func (s Scope) Account() (n AccountName, ok bool) {
	name, ok := strings.CutPrefix(string(s), accountPrefix)
	n = AccountName(name)
	return n, ok && n.Validate() == nil
}

// Place is where in a platform's account something is said.
type Place struct {
	// Chat is the platform's id of a channel, a room or a person.
	Chat string `json:"chat"`
	// Thread is the platform's id of a thread in it; empty: none.
	Thread string `json:"thread,omitempty"`
}

// GatewayReceived says that a message of a platform has become a message of a session
// (scope account-<name>). The platform is told that it was taken after this.
type GatewayReceived struct {
	Account AccountName `json:"account"`
	Place   Place       `json:"place"`
	// Message is the platform's id of it.
	Message string    `json:"message"`
	Session SessionID `json:"session"`
	Receipt ReceiptID `json:"receipt"`
	// Cursor is what the platform goes on behind after a lost connection.
	Cursor string `json:"cursor,omitempty"`
}

// GatewaySent says that a platform took a part of what was to be said (scope
// account-<name>).
type GatewaySent struct {
	Account AccountName `json:"account"`
	Place   Place       `json:"place"`
	// Send is the stable id of the whole; a part sent again has the same Send and Part.
	Send  string `json:"send"`
	Part  int    `json:"part"`  // which part it is, from 1
	Parts int    `json:"parts"` // of how many
	// Message is the id that the platform gave it; empty if it gives none.
	Message string    `json:"message,omitempty"`
	Session SessionID `json:"session,omitempty"`
	// At is where in the log it was asked for; absent if it was not.
	At Sequence `json:"at,omitempty"`
	// Through is up to where in the log everything that asked for something to be said is
	// done.
	Through Sequence `json:"through,omitempty"`
}

// GatewayDelayed says that a part will be tried again (scope account-<name>).
type GatewayDelayed struct {
	Account AccountName `json:"account"`
	Place   Place       `json:"place"`
	// Send is the stable id of the whole.
	Send  string `json:"send"`
	Part  int    `json:"part"`  // which part it is, from 1
	Parts int    `json:"parts"` // of how many
	// Until is when, not earlier.
	Until   time.Time `json:"until"`
	Attempt int       `json:"attempt"` // how many have failed
	Reason  string    `json:"reason"`
	Session SessionID `json:"session,omitempty"`
}

// GatewayDropped says that something is given up: the rest of what was to be said, or
// messages of the platform that can no longer be had (scope account-<name>).
type GatewayDropped struct {
	Account AccountName `json:"account"`
	Place   Place       `json:"place,omitzero"`
	Reason  string      `json:"reason"`
	// Send is what was not said, from Part on; empty if it is not about a send.
	Send    string    `json:"send,omitempty"`
	Part    int       `json:"part,omitempty"` // the first that was not said
	Session SessionID `json:"session,omitempty"`
	// GapFrom and GapTo are between when messages of the platform are missing.
	GapFrom time.Time `json:"gap_from,omitzero"`
	GapTo   time.Time `json:"gap_to,omitzero"` // see gap_from
	// At is where in the log it was asked for; absent if it was not.
	At Sequence `json:"at,omitempty"`
	// Through is up to where in the log everything that asked for something to be said is
	// done.
	Through Sequence `json:"through,omitempty"`
}

// RecordGateway puts one fact on an account's record. It is sent by the gateway that
// holds the account's lease, and names one fact. A fact that is sent as two commands is
// recorded twice: readers go by its ids. Answer: [Done].
type RecordGateway struct {
	Account  AccountName `json:"account"`
	Instance Instance    `json:"instance"`
	// Fence is that of the account's lease.
	Fence    Fence            `json:"fence"`
	Received *GatewayReceived `json:"received,omitempty"`
	Sent     *GatewaySent     `json:"sent,omitempty"`
	Delayed  *GatewayDelayed  `json:"delayed,omitempty"`
	Dropped  *GatewayDropped  `json:"dropped,omitempty"`
}

// Fact returns the type and data of the one fact; ok is false unless it is exactly one,
// and of the account.
func (r RecordGateway) Fact() (t Type, data any, ok bool) {
	n := 0
	take := func(there bool, account func() AccountName, as Type, d any) {
		if there {
			n++
			t, data, ok = as, d, account() == r.Account
		}
	}
	take(r.Received != nil, func() AccountName { return r.Received.Account }, TypeGatewayReceived, r.Received)
	take(r.Sent != nil, func() AccountName { return r.Sent.Account }, TypeGatewaySent, r.Sent)
	take(r.Delayed != nil, func() AccountName { return r.Delayed.Account }, TypeGatewayDelayed, r.Delayed)
	take(r.Dropped != nil, func() AccountName { return r.Dropped.Account }, TypeGatewayDropped, r.Dropped)
	return t, data, ok && n == 1
}
