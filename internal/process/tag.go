package process

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// tag marks a process and all that comes from it: a soft limit on how long a process may
// compute under a real-time policy, so high (146,000 years at least, in microseconds)
// that it limits nothing. Unlike the environment, limits go through every fork and
// execution, also that of env -i, and unlike the session, setsid does not change them.
// 0: no tag.
type tag uint64

const tagBase = 1 << 62

func newTag() tag { return tag(tagBase | rand.Uint64N(tagBase)) }

// with runs f while this process has the tag, so that what f forks inherits it. It
// returns 0, with f run all the same, where the limit cannot be set.
func (t tag) with(f func()) tag {
	var own unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_RTTIME, nil, &own); err != nil {
		f()
		return 0
	}
	err := unix.Prlimit(0, unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: uint64(t), Max: own.Max}, nil)
	f()
	if err != nil {
		return 0
	}
	// Lowering or restoring a soft limit below the hard one is always allowed.
	_ = unix.Prlimit(0, unix.RLIMIT_RTTIME, &own, nil)
	return t
}

// on reports whether a process has the tag. Of one that is gone it is false.
func (t tag) on(pid int) bool {
	if t == 0 {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return false
	}
	name := []byte("Max realtime timeout")
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, name); ok {
			fields := bytes.Fields(rest)
			return len(fields) > 0 && string(fields[0]) == strconv.FormatUint(uint64(t), 10)
		}
	}
	return false
}
