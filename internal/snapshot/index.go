package snapshot

import (
	"context"
	"fmt"
	"slices"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
)

// SegmentSlots is how many sessions one segment has: what is written anew when one of
// them changes, about 100 KiB.
const SegmentSlots = 256

// pageItems is how many names and ids a page has at most.
const pageItems = 4000

// Entry is what the index has of a session.
type Entry struct {
	// Slot is the session's place, which it keeps; its segment is Slot / SegmentSlots.
	Slot    int
	Profile events.Profile
	Brief   lifecycle.Brief
	// Snapped sessions have a snapshot of their own.
	Snapped bool
}

// Name is a name's record and where it is.
type Name struct {
	Subject  string
	Record   events.NameRecord
	Sequence events.Sequence
}

// ID leads from the hash of an id to the place of its session.
type ID struct {
	Hash uint64
	Slot uint32
}

// part is a message of the index: a place and the sequence that was written there.
type part struct {
	Place    string
	Sequence events.Sequence
}

// manifest names the parts of one index.
type manifest struct {
	Identity Identity
	Number   uint64
	Through  events.Sequence
	Anchor   string
	Profiles []Profile
	Segments []part
	Pages    []part
}

type page struct {
	Names []Name
	IDs   []ID
}

// Profile names what a profile has beside its sessions. It is not in the index itself.
type Profile struct {
	Name   events.Profile
	Scopes []events.Scope // all of them, _profile among them
}

// Change is what is new since the last time.
type Change struct {
	// Through is the last sequence of the log that the index covers, Anchor says what is
	// there (see [Anchor]).
	Through events.Sequence
	Anchor  string
	// Segments are those that changed, whole.
	Segments map[int][]Entry
	Names    []Name
	IDs      []ID
	Profiles []Profile
	// Whole says that the change has all there is, and that nothing of before may stay.
	Whole bool
}

// Index writes the index. It belongs to one goroutine.
type Index struct {
	store *Store
	now   manifest // the newest that was written whole
	open  page     // what the last page of now has, and what is to come into it
	full  int      // pages of now that grow no more
}

// Through returns how far the index goes that was written or read last.
func (x *Index) Through() events.Sequence { return x.now.Through }

// Write writes what changed, and then the manifest. After an error the index before
// holds; names and ids need not be given again, segments do.
func (x *Index) Write(ctx context.Context, c Change) error {
	next := manifest{
		Identity: x.store.id, Number: x.now.Number + 1, Through: c.Through, Anchor: c.Anchor, Profiles: c.Profiles,
		Segments: slices.Clone(x.now.Segments), Pages: slices.Clone(x.now.Pages[:min(x.full, len(x.now.Pages))]),
	}
	if c.Whole {
		next.Segments, next.Pages, x.open = nil, nil, page{}
	}
	x.open.Names, x.open.IDs = append(x.open.Names, c.Names...), append(x.open.IDs, c.IDs...)
	if err := x.writeSegments(ctx, &next, c.Segments); err != nil {
		return err
	}
	rest, full, err := x.writePages(ctx, &next)
	if err != nil {
		return err
	}
	if _, err := x.store.write(ctx, place("manifest", 0, next.Number), next); err != nil {
		return err
	}
	x.now, x.open, x.full = next, rest, full
	if c.Whole {
		return x.store.keepOnly(ctx, next)
	}
	return nil
}

// keepOnly removes what is of no index any more.
func (s *Store) keepOnly(ctx context.Context, m manifest) error {
	named := map[string]bool{events.IndexSubject(place("manifest", 0, m.Number)): true}
	for _, p := range slices.Concat(m.Segments, m.Pages) {
		if p.Place != "" {
			named[events.IndexSubject(p.Place)] = true
		}
	}
	var old []events.Sequence
	err := s.log.Scan(ctx, events.PatternIndex, 1, func(k sessionlog.Stored) error {
		if !named[k.Subject] {
			old = append(old, k.Sequence)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, seq := range old {
		if err := s.log.Delete(ctx, seq); err != nil {
			return err
		}
	}
	return nil
}

// place returns where a part is written: the other of its two places each time.
func place(kind string, n int, number uint64) string {
	return fmt.Sprintf("%s-%d-%c", kind, n, 'a'+rune(number%2))
}

// other returns the place of a part that the manifest in force does not name.
func other(kind string, n int, now []part) string {
	a, b := place(kind, n, 0), place(kind, n, 1)
	if n < len(now) && now[n].Place == a {
		return b
	}
	return a
}

func (x *Index) writeSegments(ctx context.Context, next *manifest, changed map[int][]Entry) error {
	for n, entries := range changed {
		at := other("segment", n, x.now.Segments)
		seq, err := x.store.write(ctx, at, entries)
		if err != nil {
			return err
		}
		for len(next.Segments) <= n {
			next.Segments = append(next.Segments, part{})
		}
		next.Segments[n] = part{at, seq}
	}
	return nil
}

// writePages writes the pages that grow, and returns the last one and how many are full.
func (x *Index) writePages(ctx context.Context, next *manifest) (rest page, full int, err error) {
	rest = x.open
	for {
		var out page
		out, rest = rest.cut()
		n := len(next.Pages)
		at := other("page", n, x.now.Pages)
		seq, err := x.store.write(ctx, at, out)
		if err != nil {
			return page{}, 0, err
		}
		next.Pages = append(next.Pages, part{at, seq})
		if len(rest.Names)+len(rest.IDs) == 0 {
			return out, n, nil
		}
	}
}

// cut returns what one page takes, and the rest.
func (p page) cut() (out, rest page) {
	n := min(len(p.Names), pageItems)
	i := min(len(p.IDs), pageItems-n)
	return page{p.Names[:n:n], p.IDs[:i:i]}, page{p.Names[n:], p.IDs[i:]}
}
