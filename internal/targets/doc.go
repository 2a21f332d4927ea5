// Package targets keeps which targets a profile has and who runs them.
//
// A target is a named place to run, declared by an executor that holds its lease.
// A registration is immutable: another one under the same name is the next
// generation. Registrations are events of the scope _profile; [State] is their
// fold and [Register], [Withdraw] and [State.Check] are the decisions over it.
//
// The package is pure: no I/O and no clock. Whether an executor is alive is the
// business of its lease, not of this package. A State is not safe for concurrent
// use; its owner guards it.
package targets
