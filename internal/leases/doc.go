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
// A lease ends by release, by an act of the bus or of an operator, or because the granter
// has seen it unchanged for its recorded ttl and grace. The granter then overwrites the
// record with an ended one, which keeps holder and fence and is itself removed by the
// server after an hour. A held record has no ttl of the server's: the server counts by its
// wall clock and removes expired keys while it starts, before their holders can renew
// (ADR 3).
//
//	         acquire                 release, drop
//	free ------------------> held ----------------> released
//	  ^                      |  ^ \                    |   ^
//	  |       ttl and grace, |  |  \ revoke            |   | given back
//	  |          not renewed |  |   +---------------> revoked
//	  |                      v  | renewed back by      |
//	  +------- 1 h ------- expired its former holder   |
//	  +------------------------------- 1 h ------------+
//
// Expired and released leases are as free for others as absent ones. A revoked one is when
// its holder has given it back, or when its time is over; the instance that it was taken
// from does not get it again while the record is there.
//
// # Clocks
//
// There are two, and they are never compared: the granter's, since its own write or
// since it began to observe, and the holder's, since before its request. Both are
// CLOCK_BOOTTIME, which goes on while the machine sleeps and cannot be set. The ttl on
// record rules, not the configuration of whoever reads it.
//
// Assumed is that the two run at the same rate, to a tenth of the ttl and 250 ms over one
// ttl: about one part in ten. Not assumed is that they agree, that wall clocks are right or
// go forward, that messages arrive in any time, or that a process runs without pauses.
//
// # Safety
//
// Each write names the revision it replaces, so of two writers one fails and reads
// again; no refusal is given on what was only remembered. A newer holder has a greater
// fence, for ever. What a former holder sends carries its old fence and is refused by
// whoever checks it. The holder stops trusting a lease a tenth of its ttl before the ttl
// has passed on its own clock; the granter expires it later than that on its own. So at no
// moment do two holders trust one lease, and nobody acts under a fence but the one to
// whom it was granted.
//
// The same holds for what was taken away: whoever does not hear of the revocation trusts
// the lease until its own deadline, and nobody gets it before.
//
// # Liveness
//
// A crashed holder's lease is free after its ttl, its grace and 250 ms, or after a start or
// a standstill of the bus and its ttl, its grace and 1 s. Within that time nobody else gets
// it and nothing is declared lost, so that a restart of the bus ends no lease. A crashed
// authority is followed within its ttl and 1 s, one that stops cleanly at once. Whoever
// waits for a lease hears of its end at once, by the republished record. A holder that has
// a connection hears of a revocation at once.
//
// A holder asks for a third of the ttl before the next renewal is due and goes on asking;
// it loses the lease only if no answer comes for the rest of the time. The first renewals of
// leases taken together, and those that an outage held up, are spread, so that 1,000 leases
// of a minute ask a bus that comes back for at most 100 renewals a second.
//
// # Failure handling
//
// A write whose answer was lost is looked for in the bucket: if it is there it counts, if
// the key has not moved the caller gets an error and tries again. An expiry that cannot
// be written is tried again each second and told to nobody before. A body that is no
// record (an expiry marker, a damaged block) is no lease. A value that the server brings
// back after a kill is observed and expires again.
//
// # Not guaranteed
//
// That a holder without a connection knows at once that it lost: it learns at its own
// deadline. That a holder which is stopped between its last look at the lease and its act
// does not act: where that matters the fence is checked once more by what it acts on. Two
// authorities may be active for a moment; the log's expected sequences make that safe.
// Fences protect where they are checked; a process outside the bus that checks no fence is
// not protected.
package leases
