package approvals_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/approvals"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// record is what a test knows of an approval, told apart from the book.
type record struct {
	digest   events.ActionDigest
	expires  time.Time
	answered bool // by a person, in time
	yes      bool
	over     bool
	used     int
}

// TestNoOrderOfAnswersUsesAnApprovalTwiceOrForAnother plays answers, uses, time and
// repeats over several open approvals, as an authority would: what is refused is not
// folded.
func TestNoOrderOfAnswersUsesAnApprovalTwiceOrForAnother(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var b approvals.Book
		now, known := noon, map[events.ApprovalID]*record{}
		var ids []events.ApprovalID
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, 0, time.Second, 2 * time.Minute}).Draw(rt, "wait"))
			if len(ids) == 0 || rapid.IntRange(0, 4).Draw(rt, "new") == 0 {
				ids = append(ids, request(&b, known, len(ids), now))
			}
			id := rapid.SampledFrom(ids).Draw(rt, "which")
			play(rt, &b, id, known, ids, now)
		}
		for _, v := range b.Open() {
			if v.State != events.ApprovalStatePending && v.State != events.ApprovalStateGranted {
				rt.Fatalf("%s is open and %s", v.Approval, v.State)
			}
		}
	})
}

func request(b *approvals.Book, known map[events.ApprovalID]*record, n int, now time.Time) events.ApprovalID {
	id := events.ApprovalID(fmt.Sprint("a", n))
	r := &record{digest: events.ActionDigest(fmt.Sprint("d", n)), expires: now.Add(approvals.Life)}
	b.Request(events.ApprovalView{ApprovalRequested: events.ApprovalRequested{Approval: id, Digest: r.digest, ExpiresAt: r.expires}})
	known[id] = r
	return id
}

func play(rt *rapid.T, b *approvals.Book, id events.ApprovalID, known map[events.ApprovalID]*record, ids []events.ApprovalID, now time.Time) {
	r := known[id]
	switch act := rapid.SampledFrom([]string{"grant", "grant", "deny", "use", "use", "use for another", "expire", "invalidate"}).Draw(rt, "act"); act {
	case "grant", "deny":
		_, err := b.Answerable(id, now)
		if may := !r.answered && !r.over && now.Before(r.expires); may != (err == nil) {
			rt.Fatalf("%s %s: %v, but it is %+v", act, id, err, *r)
		}
		if err != nil {
			return
		}
		r.answered, r.yes, r.over = true, act == "grant", act == "deny"
		if act == "grant" {
			b.Grant(id, "op", "", now)
			return
		}
		b.Deny(id, "op", "", "no", now)
	case "use", "use for another":
		digest := r.digest
		if act != "use" {
			digest = known[rapid.SampledFrom(ids).Draw(rt, "other")].digest
		}
		err := b.Usable(id, digest, now)
		if may := r.yes && !r.over && now.Before(r.expires) && digest == r.digest; may != (err == nil) {
			rt.Fatalf("%s %s: %v, but it is %+v", act, id, err, *r)
		}
		if err != nil {
			return
		}
		b.Consume(id)
		if r.used, r.over = r.used+1, true; r.used > 1 {
			rt.Fatalf("%s was used %d times", id, r.used)
		}
	case "expire":
		if v, ok := b.Expired(now); ok {
			if now.Before(known[v.Approval].expires) {
				rt.Fatalf("%s expires too early", v.Approval)
			}
			b.Expire(v.Approval, now)
			known[v.Approval].over = true
		}
	case "invalidate":
		b.Invalidate(id, "moved", now)
		r.over = true
	}
}

func TestABookSaysWhyAnApprovalIsOfNoUse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(*approvals.Book)
		code events.Code
	}{
		"one that was granted": {func(b *approvals.Book) { b.Grant("a0", "op", "", noon) }, events.CodeAlreadyAnswered},
		"one that was used":    {func(b *approvals.Book) { b.Grant("a0", "op", "", noon); b.Consume("a0") }, events.CodeAlreadyAnswered},
		"one that was denied":  {func(b *approvals.Book) { b.Deny("a0", "op", "u", "no", noon) }, events.CodeAlreadyAnswered},
		"one that expired":     {func(b *approvals.Book) { b.Expire("a0", noon) }, events.CodeApprovalExpired},
		"one that moved":       {func(b *approvals.Book) { b.Invalidate("a0", "moved", noon) }, events.CodeStaleApproval},
	} {
		var b approvals.Book
		request(&b, map[events.ApprovalID]*record{}, 0, noon)
		c.do(&b)
		if _, err := b.Answerable("a0", noon); events.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want code %s", name, err, c.code)
		}
	}
	var b approvals.Book
	if _, err := b.Answerable("nobody's", noon); events.CodeOf(err) != events.CodeUnknownApproval {
		t.Errorf("one that never was: %v", err)
	}
}

func TestABookForgetsTheOldestOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	var b approvals.Book
	known := map[events.ApprovalID]*record{}
	for i := range approvals.MaxEnded + 10 {
		b.Deny(request(&b, known, i, noon), "op", "", "", noon)
	}
	if n := len(b.Ended()); n != approvals.MaxEnded {
		t.Errorf("%d are remembered", n)
	}
	_, first := b.Get("a0")
	_, last := b.Get(events.ApprovalID(fmt.Sprint("a", approvals.MaxEnded+9)))
	if first || !last {
		t.Errorf("the oldest is kept: %v, the newest: %v", first, last)
	}
}
