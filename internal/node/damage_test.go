package node_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"keryx/client"
	"keryx/events"
	"keryx/internal/node"
	"keryx/internal/sessionlog"
	"keryx/internal/storefile"
)

// account is what a store's readers see, taken from outside: per session how many events,
// and a hash over every one of them.
type account map[events.SessionID]struct {
	events int
	hash   [32]byte
}

// fill makes a store with sessions and closes it.
func fill(t *testing.T, dir string, sessions int) account {
	t.Helper()
	n := start(t, node.Config{Dir: dir})
	var ids []events.SessionID
	c, first := register(t, n, "k:0", events.Policy{})
	ids = append(ids, first.Session)
	for i := 1; i < sessions; i++ {
		r, err := c.Register(t.Context(), events.Names{GatewaySessionKey: events.GatewaySessionKey(fmt.Sprint("k:", i))}, events.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.Session)
	}
	for _, id := range ids {
		for m := range 3 {
			if _, err := c.Submit(t.Context(), events.Submit{To: string(id), Body: events.Body{Text: fmt.Sprint("message ", m, " ", id)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := read(t, c, ids)
	shut(t, c)
	stop(t, n)
	return a
}

func read(t *testing.T, c *client.Conn, ids []events.SessionID) account {
	t.Helper()
	out := make(account)
	for _, id := range ids {
		h := sha256.New()
		e := out[id]
		for from := events.Sequence(1); from != 0; {
			page, err := c.Page(t.Context(), id.Scope(), from, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, rec := range page.Records {
				fmt.Fprintln(h, rec.Ordinal, rec.Type, string(rec.Data))
				e.events++
			}
			from = page.Next
		}
		e.hash = [32]byte(h.Sum(nil))
		out[id] = e
	}
	return out
}

const logMsgs = "store/jetstream/$G/streams/KX_LOG/msgs"

func logFile(dir, name string) string { return filepath.Join(dir, filepath.FromSlash(logMsgs), name) }

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// flip changes one byte of the data of the message that holds a text.
func flip(t *testing.T, dir, text string) {
	t.Helper()
	edit(t, logFile(dir, "1.blk"), func(b []byte) []byte {
		at := bytes.Index(b, []byte(text))
		if at < 0 {
			t.Fatalf("no %q in the block", text)
		}
		b[at] ^= 1
		return b
	})
}

// files are those of a closed store's log.
type files struct {
	t   *testing.T
	dir string
}

func (f files) flip(text string) {
	f.t.Helper()
	flip(f.t, f.dir, text)
}

func (f files) edit(name string, change func([]byte) []byte) {
	f.t.Helper()
	edit(f.t, logFile(f.dir, name), change)
}

func (f files) remove(name string) {
	f.t.Helper()
	remove(f.t, logFile(f.dir, name))
}

// TestADamagedStoreIsRefusedOrRepairedByName damages the files of a closed store. Whatever
// is then served must be what was there before: hashes over every event, taken before
// the damage, are the judge.
func TestADamagedStoreIsRefusedOrRepairedByName(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		damage func(f files)
		kind   storefile.Kind // of the refusal; empty for one of the others
		lost   bool           // the refusal is *RegressedError
		whole  bool           // nothing is refused: all is served
		intact bool           // what is lost belongs to no session's record
	}{
		{name: "a flipped byte in a message", kind: storefile.KindChecksum, damage: func(f files) { f.flip("message 1") }},
		{name: "a flipped byte and no index", kind: storefile.KindChecksum, damage: func(f files) {
			f.flip("message 1")
			f.remove("index.db")
		}},
		{name: "a flipped length of the first record, a name", intact: true, kind: storefile.KindTruncated, damage: func(f files) {
			f.edit("1.blk", func(b []byte) []byte { b[2] ^= 0x70; return b })
		}},
		{name: "zeroes in the middle", kind: storefile.KindChecksum, damage: func(f files) {
			f.edit("1.blk", func(b []byte) []byte { clear(b[len(b)/2 : len(b)/2+600]); return b })
		}},
		{name: "a truncated block", lost: true, damage: func(f files) {
			f.edit("1.blk", func(b []byte) []byte { return b[:len(b)*2/3] })
		}},
		{name: "a truncated block and no index", lost: true, damage: func(f files) {
			f.edit("1.blk", func(b []byte) []byte { return b[:len(b)-3] })
			f.remove("index.db")
		}},
		{name: "a removed block", lost: true, damage: func(f files) { f.remove("1.blk") }},
		{name: "a removed index", whole: true, damage: func(f files) { f.remove("index.db") }},
		{name: "a damaged index", whole: true, damage: func(f files) {
			f.edit("index.db", func(b []byte) []byte { b[len(b)/2] ^= 0xff; return b })
		}},
		{name: "bytes behind the end, as a kill leaves them", whole: true, damage: func(f files) {
			f.edit("1.blk", func(b []byte) []byte { return append(b, b[:40]...) })
		}},
		{name: "a damaged description of the stream", kind: storefile.KindMeta, damage: func(f files) {
			f.edit("../meta.inf", func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"max_consumers":-1`), []byte(`"max_consumers":-2`), 1)
			})
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			before := fill(t, dir, 4)
			tc.damage(files{t, dir})
			if tc.whole {
				compare(t, dir, node.Config{}, before, 0)
				return
			}
			for range 2 { // a refusal changes nothing
				_, err := node.Start(t.Context(), node.Config{Dir: dir})
				var damaged *storefile.DamagedError
				var regressed *sessionlog.RegressedError
				switch {
				case tc.lost && !errors.As(err, &regressed):
					t.Fatalf("start: %v, want *RegressedError", err)
				case !tc.lost && (!errors.As(err, &damaged) || damaged.Damages[0].Kind != tc.kind):
					t.Fatalf("start: %v, want *DamagedError, %s", err, tc.kind)
				}
			}
			most := 4
			if tc.kind == storefile.KindMeta || tc.intact {
				most = 0
			}
			compare(t, dir, node.Config{AcceptLoss: true}, before, most)
			compare(t, dir, node.Config{}, before, most) // accepted once, accepted
		})
	}
}

// compare starts a store and holds every session against what it was before: the same, or
// shorter. Nothing that is served was not there.
func compare(t *testing.T, dir string, cfg node.Config, before account, mostChanged int) {
	t.Helper()
	cfg.Dir = dir
	n := start(t, cfg)
	c, err := n.Connect(t.Context(), events.Principal{Profile: "default", Name: "gw", Role: events.RoleGateway})
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for id, was := range before {
		if _, err := c.Show(t.Context(), string(id)); errors.Is(err, events.ErrOf(events.CodeUnknownSession)) {
			changed++
			continue
		}
		switch is := read(t, c, []events.SessionID{id})[id]; {
		case is.hash == was.hash:
		case is.events >= was.events:
			t.Errorf("session %s has %d events that are not the %d there were", id, is.events, was.events)
		default:
			changed++
		}
	}
	if changed > mostChanged || mostChanged > 0 && changed == 0 {
		t.Errorf("%d sessions lost events, want %d at most, and one at least if any may", changed, mostChanged)
	}
	shut(t, c)
	stop(t, n)
}

func TestWhatWasTakenOutOfAStoreIsKeptAndOnRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir, 2)
	flip(t, dir, "message 0")
	damaged, err := os.ReadFile(logFile(dir, "1.blk"))
	if err != nil {
		t.Fatal(err)
	}
	n := start(t, node.Config{Dir: dir, AcceptLoss: true})
	c, _ := register(t, n, "k:new", events.Policy{})
	page, err := c.Page(t.Context(), events.ScopeProfile, 0, 0)
	if err != nil || len(page.Records) != 1 {
		t.Fatalf("the profile's record has %v, %v; want the loss", page.Records, err)
	}
	d, err := events.DataOf[events.StoreRegressed](page.Records[0])
	if err != nil || d.Generation != 2 || d.Lost != 1 || len(d.Damaged) != 1 {
		t.Errorf("the loss is recorded as %+v, %v; want 1 missing in 1 place, generation 2", d, err)
	}
	shut(t, c)
	stop(t, n)
	kept, err := filepath.Glob(filepath.Join(dir, "damaged", "*1.blk"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept are %v, %v", kept, err)
	}
	if b, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(b, damaged) {
		t.Errorf("the copy is not the block as it was: %v", err)
	}
}

func TestAStoreOfANewerBusIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := fill(t, dir, 1)
	path := filepath.Join(dir, "format.json")
	edit(t, path, func([]byte) []byte { return []byte(`{"format":2}`) })
	_, err := node.Start(t.Context(), node.Config{Dir: dir, AcceptLoss: true})
	var format *storefile.FormatError
	if !errors.As(err, &format) || format.Found != 2 {
		t.Fatalf("start: %v, want *FormatError with format 2", err)
	}
	edit(t, path, func([]byte) []byte { return []byte(`{"for`) })
	if _, err := node.Start(t.Context(), node.Config{Dir: dir}); !errors.As(err, &format) || format.Err == nil {
		t.Fatalf("start: %v, want *FormatError with the reason", err)
	}
	remove(t, path) // of a bus before there were notes
	compare(t, dir, node.Config{}, before, 0)
	if b, err := os.ReadFile(path); err != nil || !bytes.Contains(b, []byte(`"format":1`)) {
		t.Errorf("the note is %q, %v", b, err)
	}
}

// TestAFullDiskKeepsNoStoreFromBeingRead lets the mark be behind, so that it has to be
// written, and has every write of it fail as on a full disk.
func TestAFullDiskKeepsNoStoreFromBeingRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := fill(t, dir, 1)
	mark := filepath.Join(dir, "high-water.json")
	edit(t, mark, func(b []byte) []byte {
		return regexp.MustCompile(`"last_sequence":"?\d+"?,(.*),"messages":\d+`).ReplaceAll(b, []byte(`"last_sequence":1,$1`))
	})
	behind, err := os.ReadFile(mark)
	if err != nil || !bytes.Contains(behind, []byte(`"last_sequence":1,`)) || bytes.Contains(behind, []byte("messages")) {
		t.Fatalf("the mark is %s, %v", behind, err)
	}
	if err := os.Symlink("/dev/full", mark+".tmp"); err != nil {
		t.Fatal(err)
	}
	c, done, err := node.OpenOffline(t.Context(), dir, "default", nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, was := range before {
		if is := read(t, c, []events.SessionID{id})[id]; is != was {
			t.Errorf("session %s has %d events that are not the %d there were", id, is.events, was.events)
		}
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}
