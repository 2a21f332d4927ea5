// Package explain says of a session, a message, a turn or an exec which facts led to where it
// stands, what it waits for, and what would move it on; and which event came of which.
//
// It is pure: it works on the events of one record, in order, and on the state that they
// fold to. What cannot be decoded explains nothing and is passed.
//
// Not guaranteed: that a cause is the only one. Events say what they are about, and from
// that their order is told: a message is offered, the offer becomes a turn, the turn asks
// for execs.
package explain
