package client

import (
	"context"
	"time"

	"keryx/events"
)

// anchor is where a chunk is stored.
type anchor struct {
	chunk uint64
	at    events.Sequence
}

// place returns where a later chunk is stored at the earliest: each chunk between takes a
// place in the stream, and what others store takes more. It is wrong where chunks were lost
// and sent again. Zero is unknown.
func (a anchor) place(chunk uint64) events.Sequence {
	if a.at == 0 || chunk <= a.chunk {
		return 0
	}
	return a.at + events.Sequence(chunk-a.chunk)
}

// look looks for what was not heard. Output that comes without holes is all that there is, and
// reading the newest chunks of a flood costs the bus 8 MiB of memory for 10 s each time.
func (r *outputReader) look(ctx context.Context) error {
	heard := r.heard
	r.heard = false
	if heard && !r.reel.waits() {
		return nil
	}
	return r.catchUp(ctx)
}

// catchUp reads what is stored and was not heard.
func (r *outputReader) catchUp(ctx context.Context) error {
	behind := r.reel.waits
	if !r.reel.waits() {
		tip, err := patiently(ctx, func() (events.OutputPage, error) { return r.page(ctx, true) })
		if err != nil || tip.Stored < r.reel.next {
			return err
		}
		behind = func() bool { return r.reel.waits() || tip.Stored >= r.reel.next }
	}
	return r.fill(ctx, behind)
}

// fill reads from where the next chunk is until the reader is not behind any more: what was
// heard need not be read again. Should the place be wrong, all is read that was not.
func (r *outputReader) fill(ctx context.Context, behind func() bool) error {
	unread, want := r.from, r.reel.next
	place := max(r.mark.place(want), r.from)
	r.from, r.first = place, anchor{}
	for {
		end, err := patiently(ctx, func() (events.OutputPage, error) { return r.page(ctx, false) })
		if err != nil || !behind() {
			return err
		}
		if end.Next == 0 {
			break
		}
		r.from = end.Next
	}
	if place == unread || r.first.follows(anchor{want, place}) {
		return nil // it is not kept, or not stored yet
	}
	r.from = unread
	return r.fetch(ctx)
}

// follows reports whether nothing can be missing from the stream between two places, but what
// is not kept any more.
func (a anchor) follows(b anchor) bool {
	return a.at != 0 && (a.chunk <= b.chunk || a.at >= b.place(a.chunk))
}

// plan says whether to look soon, after something came. What was missed shows as a hole as
// soon as more comes, or else after a short silence.
func (r *outputReader) plan(missed bool) (soon bool, wait time.Duration) {
	if r.newHole() {
		return true, 0
	}
	return missed, outputLookMin
}
