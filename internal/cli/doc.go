// Package cli is what the command trees in cmd have in common: connecting to a bus,
// printing, and turning errors into messages and exit codes.
//
// A command reaches a bus by its directory or by URL and credentials ([Bus]). With a
// directory it asks the running bus for the operator's rights; when none runs it opens
// the store itself, under the store's lock.
//
// [Main] runs a tree. What went wrong is one line on standard error,
// "<program>: <code>: <message>", with a code of the bus's error table; the exit code is
// 1, or 2 when the command was called wrongly ([UsageError]).
package cli
