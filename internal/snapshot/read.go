package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// Contents are what an index has.
type Contents struct {
	Through  events.Sequence
	Profiles []Profile
	Entries  []Entry // in no order
	Names    []Name
	IDs      []ID
}

// Anchor says which message is at a place of the log.
func Anchor(m sessionlog.Stored) string {
	h := sha256.New()
	h.Write([]byte(m.Subject + "\n" + m.Sequence.String() + "\n" + m.Header.Get("ce-id") + "\n"))
	h.Write(m.Data)
	return hex.EncodeToString(h.Sum(nil))
}

// Read returns the newest index that is whole and of this log, and what it has; ok is
// false if there is none, and x is an empty one then, newer than any before. An error
// means that the stream could not be read.
func (s *Store) Read(ctx context.Context, log *sessionlog.Log) (x *Index, c Contents, ok bool, err error) {
	stored := map[string]sessionlog.Stored{}
	err = s.log.Scan(ctx, events.PatternIndex, 1, func(m sessionlog.Stored) error {
		stored[m.Subject] = m
		return nil
	})
	if err != nil {
		return nil, c, false, err
	}
	all := s.manifests(stored)
	for _, m := range all {
		if !m.Identity.same(s.id) {
			continue
		}
		if at, err := log.At(ctx, m.Through); err != nil || Anchor(at) != m.Anchor {
			continue
		}
		if x, c, ok := s.assemble(m, stored); ok {
			return x, c, true, nil
		}
	}
	x = &Index{store: s}
	if len(all) > 0 {
		x.now.Number = all[0].Number
	}
	return x, c, false, nil
}

// manifests returns those that can be read, the newest first.
func (s *Store) manifests(stored map[string]sessionlog.Stored) []manifest {
	var out []manifest
	for n := range uint64(2) {
		var m manifest
		kept, ok := stored[events.IndexSubject(place("manifest", 0, n))]
		if ok && decode(kept.Data, &m) == nil {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b manifest) int { return cmp.Compare(b.Number, a.Number) })
	return out
}

// assemble decodes the parts of a manifest, some at a time; ok is false if one is not
// there as it was.
func (s *Store) assemble(m manifest, stored map[string]sessionlog.Stored) (*Index, Contents, bool) {
	c := Contents{Through: m.Through, Profiles: m.Profiles}
	segments, pages := make([][]Entry, len(m.Segments)), make([]page, len(m.Pages))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range slices.Concat(m.Segments, m.Pages) {
		if p.Place == "" {
			continue // a segment without a session
		}
		kept, ok := stored[events.IndexSubject(p.Place)]
		if !ok || kept.Sequence != p.Sequence {
			return nil, c, false
		}
		g.Go(func() error {
			if strings.HasPrefix(p.Place, "segment-") {
				return decode(kept.Data, &segments[i])
			}
			return decode(kept.Data, &pages[i-len(m.Segments)])
		})
	}
	if g.Wait() != nil {
		return nil, c, false
	}
	c.Entries = slices.Concat(segments...)
	for _, p := range pages {
		c.Names, c.IDs = append(c.Names, p.Names...), append(c.IDs, p.IDs...)
	}
	x := &Index{store: s, now: m}
	if x.full = len(pages) - 1; x.full >= 0 {
		x.open = pages[x.full]
	}
	x.full = max(x.full, 0)
	return x, c, true
}
