// Package leases grants one holder at a time the right to drive a target, a session or
// a gateway account, and elects the active authority.
//
// # Model
//
// A lease is one key of a JetStream KV bucket, written by compare-and-set. The revision
// of the acquiring write, together with the store's generation, is the lease fence; it
// stays through renewals. [Granter] is the granting side, used by the active authority
// for the proven caller of a command. [Elector] is how authorities decide among
// themselves who is active. The holder's side is client.Keeper.
//
// A lease ends by release, by revocation, or because the granter has seen it unchanged
// for its recorded ttl. The granter then overwrites the record with an ended one, which
// keeps holder and fence and is itself removed by the server after an hour. A held
// record has no ttl of the server's: the server counts by its wall clock and removes
// expired keys while it starts, before their holders can renew (ADR 3).
//
// # Safety
//
// Each write names the revision it replaces, so of two writers one fails. A newer
// holder has a greater fence, for ever. What a former holder sends carries its old
// fence and is refused by whoever checks it. Nobody compares a deadline written by
// another machine: the granter measures since its own write, or since it began to
// observe, on CLOCK_BOOTTIME; the holder since before its request.
//
// # Liveness
//
// A crashed holder's lease is free after its ttl and 250 ms, or after a start of the
// bus and its ttl and 1 s. Within that time nobody else gets it and nothing is declared
// lost, so that a restart of the bus ends no lease. A former holder whose lease expired
// may renew it back, with the same fence, as long as nobody has taken it since.
//
// # Not guaranteed
//
// That a holder knows at once that it lost: it learns at its own deadline, or when it
// is refused. Fences make that safe where they are checked; a process outside the bus
// that checks no fence is not protected.
package leases
