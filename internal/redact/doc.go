// Package redact takes secrets out of what is shown, stored and exported.
//
// # Model
//
// A [Set] holds registered secrets and finds them in bytes. A [Stream] does so in output
// that comes in pieces: it holds back what may be the beginning of a secret until it is
// known to be none. [Rules] work on the JSON of events and states: registered secrets in
// every text, values whose name says that they are secret, and what is written like a
// credential. [Strict] keeps only what is on a list. [File] is where the registered secrets
// are: a file that only its owner can read, on the machines that have to find them.
//
// # Guaranteed
//
// No registered secret is in what a Stream gives out, whatever the pieces it came in, with
// one exception that is asked for: see [Stream.Release]. A Stream holds back less than the
// longest secret has. JSON stays JSON, and what is not taken out stays byte for byte.
//
// # Not guaranteed
//
// That a secret is found in another form: encoded, escaped, cut by line breaks or colors,
// or turned by the program that prints it.
package redact
