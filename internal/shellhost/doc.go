// Package shellhost is the built-in host "shell": an agent whose mind is /bin/sh.
//
// Each message of a turn is run by /bin/sh -c in the session's target, through the
// executor like any other command. The output, both streams in the order in which it
// was read, is streamed as pieces of the reply and is the reply, less one trailing
// newline and cut in the middle if it is too long.
//
// How the command ends is how the turn ends: status 0 completes it, another status
// fails it, a signal, a timeout or an interrupt aborts it, and a command that was
// refused or lost fails it with the bus's words.
//
// Guaranteed: a reply is valid UTF-8 and fits into one event; pieces never split a
// character. The bytes themselves are kept, exactly, as the output of the exec.
package shellhost
