// Package bridge joins one account of a chat platform to the sessions of a profile.
//
// # Model
//
// A place (chat and thread) has the gateway session key KIND:ACCOUNT:CHAT[:THREAD]. What
// is said there is submitted to the session of that key, with an idempotency key that
// says where it comes from: the record of the session itself tells, to whoever reads it,
// where an answer goes. The bridge follows the profile; when a turn ends it says the reply
// in each place from which a message of the turn came, and a reply to nobody's message
// (the end of a job, a reminder) in the place of the session's own key.
//
// What was received, sent, delayed and given up is on the account's record, scope
// account-NAME, which the holder of the account's lease alone may write. Log and record
// are the truth: a bridge that takes over folds them, and goes on. No file is kept.
//
// # Guaranteed
//
// One bridge at a time speaks for an account: before each send the lease is looked at.
// A message is acknowledged after the bus has it, and is taken once, whatever often it
// comes within 24 hours. Each reply is sent at least once, part after part in order in its
// place, under one stable id; a part is sent twice only if the bridge died between the
// platform's yes and the record of it. A place that has to wait holds up no other.
//
// # Not guaranteed
//
// Pieces of replies are not carried while they are made. Order between places.
//
// # Goroutines
//
// [Account.Run] owns all of them and has joined them when it returns.
package bridge
