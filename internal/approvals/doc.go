// Package approvals holds the rules by which a person's word is asked for before a
// command runs. It is pure: no input or output, no clock, no goroutine.
//
// # Model
//
// A target's policy says which argument lists need an approval ([Need]). An approval is
// for one [Action]: its [Action.Digest] covers every byte that decides what would run,
// where, as whom and under which policy. A [Book] is folded from events and keeps where
// each approval stands:
//
//	pending -> granted -> consumed
//	   |          |-> expired, invalidated
//	   '-> denied, expired, invalidated
//
// # Guaranteed
//
// An approval is answered once and used at most once, for the digest it was asked for
// and within [Life] of being asked for. Several may be open; each is addressed by its
// id, so that the order of answers means nothing.
//
// # Not guaranteed
//
// That a rule on argument prefixes sees through a shell: `sh -c 'rm x'` begins with sh.
// Ask by default and let go by rule, not the other way round.
package approvals
