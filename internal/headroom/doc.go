// Package headroom keeps a process small beside what it needs when nothing special happens.
//
// It moves Go's soft memory limit along: a burst of work gets so much beyond the goal of the
// collector at rest, and what is free beyond that goes back to the system. Steady load is
// never limited, whatever it needs: after [Window] of it the limit is above it again. Growth
// by more than [Burst] within that time makes the collector work harder, for that time.
//
// It does not bound a process that needs more: the limit is Go's, which is soft.
package headroom
