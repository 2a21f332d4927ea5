// Package gateway is the bridge between a person and a session.
//
// # Model
//
// A [Chat] is one conversation, named by its gateway session key. It registers the
// session, submits messages with an idempotency key each, follows the session's record,
// and tells a [Front] what happens: pieces of a reply while it is made, the whole of it
// from turn.ended, and what went wrong. [Pipe] is the front for piped input: a line is a
// message, replies alone go out. [Terminal] is the front for a person: line editing,
// streamed output above the prompt, live state in it.
//
// Lines that begin with a slash are commands ([Parse]); two slashes send one.
//
// # Guaranteed
//
// A message is submitted once, however often the bus goes away in between. Each reply
// to an own message is told once, in the order in which turns end, before the message
// counts as settled. At most [MaxInFlight] own messages wait at once.
//
// # Not guaranteed
//
// Pieces may be missing; what was not streamed is in [Ended.Rest]. After a failed
// submission with code timeout the message may have been taken.
//
// Concurrency: the methods of Chat are safe for concurrent use. A Front is called from
// one goroutine, that of [Chat.Run], and must not call back into Chat's blocking methods.
package gateway
