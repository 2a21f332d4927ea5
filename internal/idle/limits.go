package idle

import "time"

// Limits of a session's queue (design section 7).
const (
	// MaxWaiting is how many items may wait in one session.
	MaxWaiting = 1000
	// MaxWaitingBytes is how much their bodies may hold together. It bounds what a
	// reset carries over in one batch.
	MaxWaitingBytes = 8 << 20
	// KeyLife is how long an idempotency key is remembered.
	KeyLife = 24 * time.Hour
	// MaxKeys is how many idempotency keys of one session are remembered.
	MaxKeys = 16384
	// OfferDeadline is how long a host has to answer an offer.
	OfferDeadline = 5 * time.Second

	firstDelay = time.Second
	maxDelay   = 30 * time.Second
)

// DeclineDelay returns how long an item is not offered again after its n-th decline
// in a row, counted from 1: 1 s, 2 s, 4 s ... 30 s.
func DeclineDelay(n int) time.Duration {
	d := firstDelay
	for i := 1; i < n && d < maxDelay; i++ {
		d *= 2
	}
	return min(d, maxDelay)
}
