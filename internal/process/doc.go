// Package process runs one process tree.
//
// [Start] launches an exact argument list in an exact environment: nothing of the
// caller's own is inherited but the three standard descriptors. The process leads a
// session and process group of its own. Its output is read through pipes and handed to
// one sink in the order in which it was read.
//
// The end has an order. The leader exits; what it left in the pipes is read, bounded,
// because a grandchild may hold them open for ever; what is left of the tree is stopped
// (TERM, grace, KILL); and only then is the leader reaped. So long as it is not, its
// process id cannot be given to another process, and neither can its group's: a signal
// to the group always hits our own. Any other process is signalled through a pidfd,
// after its start time was compared.
//
// Guaranteed: every byte the leader wrote is delivered before Wait returns; no call of
// the sink comes after that; no descriptor or goroutine is left behind.
//
// Not guaranteed: finding a descendant that left the session, whose parent died before
// anyone looked, and that dropped the mark from its environment ([Spec.Mark]). A control
// group closes that hole; this package does not use one yet. A leader that the kernel
// cannot kill (uninterruptible I/O) delays Wait until it ends.
package process
