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
	// KeptReceipts is how many ended items of a session are kept in memory; where those
	// before them stand is read from the log.
	KeptReceipts = 256
	// OfferDeadline is how long a host has to answer an offer.
	OfferDeadline = 5 * time.Second

	// MergeWindow is how long after an item of mode merge another one joins it, and how
	// long it waits for one.
	MergeWindow = 300 * time.Millisecond
	// MergeMost is how long after the first of them an item joins at most.
	MergeMost = 2 * time.Second
	// MaxMerge and MaxMergeBytes bound what becomes one turn.
	MaxMerge      = 100
	MaxMergeBytes = 512 << 10
	// Budget is how many automatic items are accepted in a row without one of a user.
	Budget = 20

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
