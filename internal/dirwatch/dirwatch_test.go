package dirwatch_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/internal/dirwatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watch watches until the test ends; each value of the channel is a call.
func watch(t *testing.T, cfg dirwatch.Config, seen dirwatch.State) <-chan struct{} {
	t.Helper()
	calls := make(chan struct{}, 64)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { dirwatch.Run(ctx, cfg, seen, func() { calls <- struct{}{} }) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return calls
}

func expect(t *testing.T, calls <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-calls:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s was not told", what)
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRun_tells_of_each_kind_of_change(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := dirwatch.Config{Dir: dir, Match: func(n string) bool { return strings.HasSuffix(n, ".yaml") }}
	a, b := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	do(t, os.WriteFile(a, []byte("1"), 0o600))
	seen := dirwatch.Look(cfg)
	do(t, os.WriteFile(a, []byte("22"), 0o600))
	calls := watch(t, cfg, seen)
	expect(t, calls, "a change before the watch")
	do(t, os.WriteFile(b, nil, 0o600))
	expect(t, calls, "a new file")
	do(t, os.WriteFile(filepath.Join(dir, "tmp"), []byte("333"), 0o600))
	do(t, os.Rename(filepath.Join(dir, "tmp"), a))
	expect(t, calls, "a file put in the place of another")
	do(t, os.Remove(b))
	expect(t, calls, "a removal")
}

func TestRun_does_not_tell_of_what_does_not_count(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := dirwatch.Config{Dir: dir, Match: func(n string) bool { return n == "a" }}
	calls := watch(t, cfg, dirwatch.Look(cfg))
	do(t, os.WriteFile(filepath.Join(dir, "b"), []byte("x"), 0o600))
	do(t, os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o600))
	expect(t, calls, "the file that counts")
	select {
	case <-calls:
		t.Error("told twice")
	case <-time.After(200 * time.Millisecond):
	}
}

func TestRun_waits_for_a_directory_that_is_not_there(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "later")
	cfg := dirwatch.Config{Dir: dir}
	calls := watch(t, cfg, dirwatch.Look(cfg))
	do(t, os.Mkdir(dir, 0o700))
	do(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	expect(t, calls, "a file in a new directory")
	do(t, os.RemoveAll(dir))
	expect(t, calls, "the end of the directory")
	do(t, os.Mkdir(dir, 0o700))
	do(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	expect(t, calls, "a file in the directory made anew")
}
