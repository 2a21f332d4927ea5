package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/client"
	"keryx/events"
	"keryx/internal/backup"
	"keryx/internal/node"
	"keryx/internal/sessionlog"
	"keryx/internal/storefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, dir string) (*client.Conn, func()) {
	t.Helper()
	n, err := node.Start(t.Context(), node.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c, err := n.Connect(t.Context(), events.Principal{Profile: "default", Name: "gw", Role: events.RoleGateway})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(c.Close(), n.Stop(ctx)); err != nil {
			t.Error(err)
		}
	}
}

func register(t *testing.T, c *client.Conn, key string) events.SessionID {
	t.Helper()
	r, err := c.Register(t.Context(), events.Names{GatewaySessionKey: events.GatewaySessionKey(key)}, events.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Session
}

func submit(t *testing.T, c *client.Conn, id events.SessionID, text string) {
	t.Helper()
	if _, err := c.Submit(t.Context(), events.Submit{To: string(id), Body: events.Body{Text: text}}); err != nil {
		t.Error(err)
	}
}

// hashes of the events of a session, one after another.
func hashes(t *testing.T, c *client.Conn, id events.SessionID) [][32]byte {
	t.Helper()
	var out [][32]byte
	for from := events.Sequence(1); from != 0; {
		page, err := c.Page(t.Context(), id.Scope(), from, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			out = append(out, sha256.Sum256(fmt.Append(nil, r.Sequence, r.Ordinal, r.Type, string(r.Data))))
		}
		from = page.Next
	}
	return out
}

func save(t *testing.T, dir string) (string, backup.Manifest) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	m, err := backup.Make(t.Context(), dir, to, backup.Options{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return to, m
}

func TestABackupOfARunningBusHoldsAllThatWasAnsweredBefore(t *testing.T) {
	t.Parallel()
	dir, restored := t.TempDir(), filepath.Join(t.TempDir(), "bus")
	c, stop := serve(t, dir)
	id := register(t, c, "k:1")
	submit(t, c, id, "before")
	before := len(hashes(t, c, id))

	var over atomic.Bool
	var load sync.WaitGroup
	for w := range 4 { // sessions are registered too: batches that must be there whole
		load.Go(func() {
			for i := 0; i < 2000 && !over.Load(); i++ {
				if i%10 == 0 {
					register(t, c, fmt.Sprintf("k:%d:%d", w, i))
				}
				submit(t, c, id, fmt.Sprint("during ", w, i))
			}
		})
	}
	to, m := save(t, dir)
	over.Store(true)
	load.Wait()
	all := hashes(t, c, id)
	stop()
	if !m.Running {
		t.Error("the backup does not know that the bus runs")
	}

	if _, err := backup.Restore(t.Context(), to, restored); err != nil {
		t.Fatal(err)
	}
	c, stop = serve(t, restored)
	defer stop()
	got := hashes(t, c, id)
	if len(got) < before || len(got) > len(all) {
		t.Fatalf("restored are %d events, there were %d before and %d after", len(got), before, len(all))
	}
	for i := range got {
		if got[i] != all[i] {
			t.Fatalf("event %d is not the one that was backed up", i+1)
		}
	}
	mark, err := sessionlog.ReadMark(restored)
	if err != nil || mark.Generation != m.Generation+1 {
		t.Errorf("the restored store has mark %+v, %v; want a generation above %d", mark, err, m.Generation)
	}
	submit(t, c, id, "after") // it goes on
	if again := register(t, c, "k:1"); again != id {
		t.Errorf("the key is session %s in the restored store, want %s", again, id)
	}
}

// closed makes a store and a backup of it.
func closed(t *testing.T) (dir, to string) {
	t.Helper()
	dir = t.TempDir()
	c, stop := serve(t, dir)
	id := register(t, c, "k:1")
	for i := range 10 {
		submit(t, c, id, fmt.Sprint("message ", i))
	}
	stop()
	to, m := save(t, dir)
	if m.Running {
		t.Error("the backup believes that a bus runs")
	}
	return dir, to
}

func change(t *testing.T, path string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, f(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

const block = "store/jetstream/$G/streams/KX_LOG/msgs/1.blk"

func TestADamagedStoreGivesNoBackup(t *testing.T) {
	t.Parallel()
	dir, _ := closed(t)
	change(t, filepath.Join(dir, block), func(b []byte) []byte { b[bytes.Index(b, []byte("message 5"))] ^= 1; return b })
	to := filepath.Join(t.TempDir(), "copy")
	_, err := backup.Make(t.Context(), dir, to, backup.Options{Now: time.Now()})
	var damaged *storefile.DamagedError
	if !errors.As(err, &damaged) || damaged.Damages[0].Kind != storefile.KindChecksum {
		t.Errorf("backup: %v, want *DamagedError", err)
	}
	if _, err := os.Stat(to); !os.IsNotExist(err) {
		t.Errorf("what was copied is still there: %v", err)
	}
}

func TestABackupThatIsNotWhatWasWrittenIsRefusedAndNothingIsMade(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		file   string
		change func([]byte) []byte
		want   string // named in the refusal
	}{
		{"a flipped byte in a block", block, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "1.blk"},
		{"a shortened block", block, func(b []byte) []byte { return b[:len(b)-10] }, "1.blk"},
		{"an edited manifest", "backup.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"generation": 1`), []byte(`"generation": 2`), 1)
		}, "backup.json"},
		{"half a manifest", "backup.json", func(b []byte) []byte { return b[:len(b)/2] }, "backup.json"},
		{"a file more", "store/more", nil, "more"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, to := closed(t)
			path := filepath.Join(to, filepath.FromSlash(tc.file))
			if tc.change == nil {
				if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				change(t, path, tc.change)
			}
			parent := t.TempDir()
			_, err := backup.Restore(t.Context(), to, filepath.Join(parent, "bus"))
			var bad *backup.BadError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("restore: %v, want *BadError that names %s", err, tc.want)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
				t.Errorf("left behind are %v, %v", left, err)
			}
		})
	}
}

func TestARestoreNeedsAnEmptyDirectoryAndAFinishedBackup(t *testing.T) {
	t.Parallel()
	dir, to := closed(t)
	var notEmpty *backup.NotEmptyError
	if _, err := backup.Restore(t.Context(), to, dir); !errors.As(err, &notEmpty) {
		t.Errorf("restore into a bus directory: %v, want *NotEmptyError", err)
	}
	if err := os.Remove(filepath.Join(to, "backup.json")); err != nil {
		t.Fatal(err)
	}
	var bad *backup.BadError
	if _, err := backup.Restore(t.Context(), to, t.TempDir()); !errors.As(err, &bad) {
		t.Errorf("restore of a backup without a manifest: %v, want *BadError", err)
	}
}
