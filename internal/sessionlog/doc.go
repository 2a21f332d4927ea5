// Package sessionlog appends to and reads from the streams of the bus.
//
// # Model
//
// The log is one JetStream stream with one literal subject per scope, so that reading
// a session is one batch get. An append names the sequence it expects the subject to
// be at; the server refuses it when somebody else was faster. Names are records on
// subjects of their own in the same stream: a batch writes names and event together or
// not at all.
//
// # Guaranteed
//
// A sequence that was returned is on disk (with the default sync mode). An append or
// batch that was refused has stored nothing. Pages hold every kept message of a
// subject from a sequence on, in order.
//
// # Not guaranteed
//
// After [ErrUnknownResult] the append may or may not be on the log: read again.
//
// # High-water mark
//
// A damaged store can come back with a lower last sequence and give numbers out again.
// [HighWater] keeps the highest sequence ever seen in a file beside the store, and
// [OpenHighWater] refuses a store that is lower.
package sessionlog
