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
// Everything that is done on somebody's order, a launch, input, a resize, a stop, needs the
// target's lease, which is looked at right before; it is trusted for less than its ttl
// since before the last request for it. Past that, orders to start are refused, input is
// dropped, and stops wait. What runs goes on or is stopped, as the target says; it is
// stopped in any case when another holds the target, when the lease was revoked, or when
// the bus, once the lease is held again, says that it has given the command up. To end what
// it has started itself, by a limit set at the launch, at its own stop or for the loss of
// its lease, an executor needs no lease.
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
// command. That a command is not launched in the moments between the last look at the lease
// and the launch itself, should this process be stopped right there.
package execution
