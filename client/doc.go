// Package client connects hosts, gateways, executors and tools to the bus.
//
// # Model
//
// A [Conn] is one authenticated principal instance. Commands go through [Conn.Do] or
// its typed wrappers: they are sent again, with the same id, until they are answered or
// their deadline has passed, over reconnects and restarts of the bus; the answer is
// that of the first one that got through. A context without a deadline gets
// [Config.Patience].
//
// Gateways register a session and submit messages to it; [Conn.Follow] reads the
// record and goes on live; [Conn.ServeHost] runs turns; [Keeper] keeps leases.
//
// # Guaranteed
//
// A refusal is an *[events.Error] and has changed nothing. A follower sees each event
// of a scope once, in order. A handler of [Conn.ServeHost] is started once for an
// offer, after the bus has recorded the turn, and its end is reported until it is
// taken.
//
// # Not guaranteed
//
// After code timeout the command may or may not have been done. Reply pieces (kx.part)
// are not durable: the whole reply is in turn.ended.
//
// All methods are safe for concurrent use unless they say otherwise.
package client
