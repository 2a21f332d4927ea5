// Package httpapi is the HTTP edge of the bus: the same commands and events for callers
// that speak HTTP and JSON only.
//
// # Model
//
// A [Server] has a principal of its own per role and acts for the bearer token of each
// request: the authority does what both may, and records both (package tokens). It knows
// the tokens by following the profile's record, so that a revoked one is refused, and its
// streams are cut, at once.
//
// Routes are a table. Most send one command: its data are the path's, the query's and
// the body's fields, checked by the command's own schema, and its answer goes back as it
// came. The table makes schemas/openapi.yaml, and a test compares the two. A route that
// reads sends only commands that read, so that no state is made by asking.
//
// Events come as pages and as server-sent events whose ids are stream sequences. All
// readers of one session share one follower and one bounded buffer; each reads at its own
// pace, from the log as long as it is behind the buffer. A live reader that falls behind
// the buffer is told of the gap and goes on at its end: it can fetch the gap as pages.
//
// A host can live on HTTP alone. Orders for its instance wait in a bounded queue until
// its stream or poll takes them, and its leases are renewed while one of the two is open,
// at the same terms as on NATS: a host that is silent for a ttl has lost its sessions.
//
// # Guaranteed
//
// Every refusal is a problem document with a code of the bus's own table. A stream that is
// resumed with Last-Event-ID has neither gap nor repeat but those it tells of. Memory is
// bounded by the number of streams, hosts and followed sessions, each limited. No request
// but a stream, a long poll or an interrupt's lasts longer than its bound.
//
// # Not guaranteed
//
// Tokens of one role share a principal and what belongs to it. Pieces of replies are not
// carried. An order that was handed to a stream which broke is told again by the bus's own
// rules, not by this package.
//
// # Goroutines
//
// [Server.Stop] ends and joins all of them, streams included.
package httpapi
