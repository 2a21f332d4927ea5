//go:build !linux

package client

import "time"

var started = time.Now()

// BootTime is a monotonic time. On this platform it may not count what the machine
// slept; a holder that slept then finds out from the bus that its leases are lost.
func BootTime() time.Duration { return time.Since(started) + time.Nanosecond }
