// Package broker runs the NATS server of a bus inside this process and decides who may
// say and hear what.
//
// # Model
//
// A broker owns one directory: the store, principals.yaml and run/. It holds a lock on
// it for as long as it runs, because the server itself would share a store with another
// and damage it; a second broker gets [*HeldError]. Streams and the lease bucket are
// made at the first start and compared at every other; what differs is repaired, or
// refused with [*StreamError].
//
// Principals prove themselves by an NKey: the server sends a nonce and they sign it. The
// public keys are in principals.yaml, which is watched; [Broker.Embed] makes principals
// that live in this process and are taken from its own connections only; the operator's
// socket (DIR/run/operator.sock, see [DialOperator]) vends the rights of a profile's
// operator to the owner of the process for as long as the caller stays connected. A key
// that is taken away has its connections cut.
//
// Rights are one table, in rights.go. Principals have no stream rights at all. NATS
// checks the subject of a publish but not its reply subject, so whatever answers on the
// server could be used to write where the caller may not: therefore the only stream that
// principals publish to gives no acknowledgements, they reach no direct get and no
// service, and none of them answers requests. What is left is the authority, which
// answers only to the caller's own inbox.
//
// # Guaranteed
//
// An append that was acknowledged survives a killed process and, with [SyncAlways], a
// loss of power. A principal speaks on no command subject but its own, so the subject of
// a command proves its caller. Nobody but the authority writes or reads the log, names,
// leases, snapshots and dead letters. Nothing crosses a profile. Each stream has a share
// of the store: a flood of output evicts output, first that of its own exec beyond
// [OutPerExec] chunks, and never takes space from the log.
//
// # Not guaranteed
//
// Within a profile everyone reads every session, lease, output and reply piece; keep
// apart by profile who must not. Instances of one principal trust each other: they share
// a key, so each can hear what is told to the other. A principal can flood: its
// connection is bounded, the sum of output is bounded, but an executor that invents exec
// ids can push out the oldest output of others. Output and snapshots are written without
// waiting for the disk, so a kill may lose the last of them. The wire is not encrypted:
// listen on loopback, or put a tunnel in front. A process of the same user as the bus
// can open the operator socket, read the directory, and thus do all that the operator
// can; run what you do not trust as another user.
//
// # Failure
//
// A principals.yaml that cannot be used at the start ends the start; later it changes
// nothing and is logged. A killed broker leaves its run files and socket behind; they
// are replaced at the next start, and [DialOperator] sees through them.
//
// Goroutines: all are joined by [Broker.Stop].
package broker
