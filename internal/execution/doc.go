// Package execution is the executor's service: it runs the commands of sessions in one
// target.
//
// [Run] holds the target's lease, registers the target, and takes orders. A start order
// is checked against what is held now (instance, generation, lease fence, the lease's
// own deadline) right before the launch; what moved is refused. An order told twice
// starts nothing twice.
//
// Output goes from the pipes into a spool on disk, one a command, and from there to the
// bus in numbered chunks. The spool decouples the two: while the bus keeps up, a flood
// is slowed down at the pipe; while the bus is away, output is kept up to a bound and
// then the oldest is given up, which the exit reports. After a lost connection, and at
// the end, the bus is asked what it has stored, and the rest is sent again. The exit is
// reported after that, for hours if need be.
//
// A command's process tree lives in a control group named after session and exec, where
// there are any. An executor that starts finds the groups of its dead instances, ends
// what runs in them before it offers its target, and reports those execs as lost.
//
// Guaranteed: every order taken ends with exactly one of refused and exited, unless this
// process dies; what is reported as kept was stored by the bus; no command inherits the
// executor's environment beyond a short list.
//
// Not guaranteed: that all output is kept. The bus keeps the newest 1,024 chunks of a
// command. Losing the lease stops no command; it only stops launches.
package execution
