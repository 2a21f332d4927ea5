package execution_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keryx/internal/execution"
)

// spoolBytes returns the sizes of the spools that this process has open in a directory;
// they have no names any more.
func spoolBytes(t *testing.T, dir string) (sizes []int64) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err != nil || !strings.HasPrefix(to, dir+"/") {
			continue
		}
		if info, err := os.Stat(fd); err == nil {
			sizes = append(sizes, info.Size())
		}
	}
	return sizes
}

func TestASpoolStaysSmallOnAFullFilesystem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		free, most, dropped int64
	}{
		"a full one":         {0, 1 << 20, 1 << 20},
		"one with room left": {1 << 40, 8 << 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBus(t)
			b.light = true
			dir := t.TempDir()
			serve(t, b, execution.Config{
				SpoolDir: dir, SpoolBytes: 8 << 20, Free: func(string) (int64, error) { return c.free, nil },
			})
			o := b.start(sh("head -c 30000000 /dev/zero; touch " + dir + "/written; sleep 0.3"))
			var largest int64
			b.until("all of it to be written", func() bool {
				for _, n := range spoolBytes(t, dir) {
					largest = max(largest, n)
				}
				_, err := os.Stat(dir + "/written")
				return err == nil
			})
			got := b.exited(o)
			if largest > c.most || largest < c.most/2 {
				t.Errorf("the spool had %d bytes, want up to %d", largest, c.most)
			}
			// The command was slowed down: nothing is lost but what a server that is flooded
			// drops, and a small spool no longer has.
			if s := got.Streams[0]; s.Bytes != 30_000_000 || s.MissingBytes > c.dropped || s.SHA256 != sum(strings.Repeat("\x00", 30_000_000)) {
				t.Errorf("stdout is %+v", s)
			}
		})
	}
}
