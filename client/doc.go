// Package client connects hosts, gateways, executors and tools to the bus.
//
// # Model
//
// A [Conn] is one instance of an authenticated principal. Commands go through [Conn.Do]
// or its typed wrappers: a command is sent again, with the same id, until it is answered
// or its deadline has passed, over reconnects and restarts of the bus, and the answer is
// that of the first one that got through. A context without a deadline gets
// [Config.Patience].
//
// Gateways register a session, submit messages to it and wait for their receipts.
// [Conn.Follow] reads the record and goes on live, [Conn.Output] does so with the output
// of a command. [Conn.ServeHost] runs turns. [Keeper] keeps leases.
//
// # Guaranteed
//
//   - A refusal is an *[events.Error], compared by code, and has changed nothing. What is
//     too large, or what the server does not let this principal send, is refused at once,
//     and the connection goes on.
//   - A follower is given each event of a scope once and in order; what is no longer kept
//     is a *[follow.GapError], what cannot be decoded a *[HoleError].
//   - The handler of a host is called once for an offer, after the bus has recorded the
//     turn, for one turn of a session at a time. The end of the turn is reported until the
//     bus has taken it, for 10 minutes, even when the session was lost meanwhile.
//   - Memory is bounded: a slow reader of a follower or of output is given from the record
//     what it could not take live.
//
// # Not guaranteed
//
//   - After code timeout the command may or may not have been done; a command that is made
//     anew has another id. Give a submit an idempotency key where that matters.
//   - Events of different scopes come in no fixed order.
//   - Reply pieces (kx.part) are not durable: the whole reply is in turn.ended.
//   - A handler that does not return when its context has ended is left behind by
//     [Conn.ServeHost], which says so.
//
// # Goroutines
//
// All methods are safe for concurrent use unless they say otherwise. Iterators and the
// callbacks of Output and Exec run on the caller's goroutine. [Conn.Close] ends what the
// package has started for the connection.
package client
