package process

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstExtra is the first descriptor that a child must not get.
const firstExtra = 3

// sealDescriptors marks everything above the standard three close-on-exec. Go opens
// its files so, but what this process itself was started with may not be.
func sealDescriptors() error {
	err := unix.CloseRange(firstExtra, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	return sealOneByOne() // kernels before 5.11
}

func sealOneByOne() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list own descriptors: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstExtra {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// pipe makes a pipe whose parent end can be waited on by the runtime. The child's end
// stays blocking, since programs expect that of their standard streams.
func pipe(parentReads bool) (parent, child *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	ours, theirs := fds[0], fds[1]
	if !parentReads {
		ours, theirs = theirs, ours
	}
	if err := unix.SetNonblock(ours, true); err != nil {
		_ = unix.Close(ours)
		_ = unix.Close(theirs)
		return nil, nil, fmt.Errorf("make pipe non-blocking: %w", err)
	}
	return os.NewFile(uintptr(ours), "parent end"), os.NewFile(uintptr(theirs), "child end"), nil
}
