package lifecycle_test

import (
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// BenchmarkFold folds a session of 100 turns; the figure is per event.
func BenchmarkFold(b *testing.B) {
	l := newLedger(b)
	l.register(events.Policy{})
	f := l.attach()
	for range 100 {
		l.submit("a message of an ordinary length, as people write them")
		l.end(f, l.accept(f), events.OutcomeCompleted)
	}
	b.ReportAllocs()
	n := 0
	var s lifecycle.State
	for b.Loop() {
		if n%len(l.records) == 0 {
			s = lifecycle.State{}
		}
		if err := lifecycle.Fold(&s, l.records[n%len(l.records)]); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// BenchmarkTurn decides, appends and folds one message from submit to session.idle.
func BenchmarkTurn(b *testing.B) {
	l := newLedger(b)
	l.register(events.Policy{})
	f := l.attach()
	b.ReportAllocs()
	for b.Loop() {
		l.after(time.Millisecond)
		l.submit("m")
		l.end(f, l.accept(f), events.OutcomeCompleted)
	}
}
