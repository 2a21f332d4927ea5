// Package events defines what travels on the bus: identifiers, subjects, the
// catalogue of events and commands with their data, error codes, and the
// CloudEvents codec for NATS.
//
// Events are facts in the past tense (keryx.turn.started.v1), written only by the
// authority. Commands are requests in the imperative (keryx.cmd.turn.accept.v1),
// sent by principals. Both are CloudEvents 1.0; payload bytes pass through the
// codec untouched.
//
// Guaranteed: what [Decode] takes, [Encode] and [MarshalStructured] write so that it is
// read again as an equal event, byte for byte in the payload and letter for letter in the
// attributes; times are equal as instants. What breaks a rule of CloudEvents is refused
// on both ways, with an *[Error] naming the attribute.
//
// Not guaranteed: in binary mode an empty payload comes out as none, and an extension
// that is a boolean or integer comes out as text, since the wire has no place for the
// difference.
//
// The package does no I/O, reads no clock and starts no goroutine. All its
// functions are safe for concurrent use. Of this module only its tests use
// another package, schemas.
package events
