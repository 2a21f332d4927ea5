package client

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is the time since the machine started, counting what it slept: the only
// clock by which leases are judged.
func BootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(fmt.Sprintf("read CLOCK_BOOTTIME: %v", err)) // only an unknown clock can fail
	}
	return time.Duration(ts.Nano())
}
