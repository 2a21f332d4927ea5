// Package process runs one process tree.
//
// [Start] launches an exact argument list in an exact environment: nothing of the
// caller's own is inherited but the three standard descriptors. The process leads a
// session and process group of its own. Its output is read through pipes and handed to
// one sink in the order in which it was read.
//
// With [Spec.Terminal] the three descriptors are a terminal, which has its size from the
// first moment. It has one stream, in which a terminal's driver has done its work (echo,
// CR before LF); Type and Resize act on it. What is typed waits in a bounded queue for a
// program that does not read.
//
// The end has an order. The leader exits; what it left in the pipes is read, bounded,
// because a grandchild may hold them open for ever; what is left of the tree is stopped
// (TERM, grace, KILL); and only then is the leader reaped. So long as it is not, its
// process id cannot be given to another process, and neither can its group's: a signal
// to the group always hits our own. Any other process is signalled through a pidfd,
// after its start time was compared.
//
// What belongs to the tree is the kernel's word where there are control groups
// ([Groups]): each tree is started in a leaf of its own, which a process cannot leave
// short of the right to write another group, which is killed in one act, and which says
// itself when it is empty. Controllers are not needed. Where no leaf can be made, the tree
// is searched for: by session and group, by parents, by a mark in the environment, and by
// a resource limit that only this tree has and that is inherited through every fork and
// execution. The limit is set on this process for the moment of the fork.
//
// [Reap] is for the orphans: the process that runs trees inherits them and must reap
// them, above all as process 1, and must take nobody's exit status while it does.
//
// Guaranteed: every byte the leader wrote is delivered before Wait returns; no call of
// the sink comes after that; no descriptor or goroutine is left behind. What
// [Exit.Cleanup] says is true: proved, the leaf was empty; swept, searches that cannot have missed anything
// found nothing.
//
// Not guaranteed: that a search finds a descendant that left the session, whose parent
// died before anyone looked, and that changed its own limits and environment. A leader
// that the kernel cannot kill (uninterruptible I/O) delays Wait until it ends. A process
// with the right to write control groups can leave its leaf.
package process
