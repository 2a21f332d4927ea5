// Package tokens knows the bearer tokens of a profile: the rules of adding and revoking
// them, and what a secret is good for.
//
// A token's secret is 256 random bits, made where it is asked for and shown once. The
// record has its SHA-256 alone: with so many bits, and none of a person's choosing, a
// slow or salted hash would add nothing. [State] is the fold of a profile's token events;
// it is pure: no I/O, no clock. It is not safe for concurrent use.
package tokens
