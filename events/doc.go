// Package events defines what travels on the bus: identifiers, subjects, the
// catalogue of events and commands with their data, error codes, and the
// CloudEvents codec for NATS.
//
// Events are facts in the past tense (keryx.turn.started.v1), written only by the
// authority. Commands are requests in the imperative (keryx.cmd.turn.accept.v1),
// sent by principals. Both are CloudEvents 1.0; payload bytes pass through the
// codec untouched.
//
// The package does no I/O, reads no clock and starts no goroutine. All its
// functions are safe for concurrent use. Its only dependency inside this module
// is the schemas package.
package events
