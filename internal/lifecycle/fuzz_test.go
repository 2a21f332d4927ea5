package lifecycle_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// FuzzFold folds lines of "<type number><data>" and then asks for everything a state
// can be asked for: whatever a log holds, nothing panics, and every event advances the
// position.
func FuzzFold(f *testing.F) {
	f.Add([]byte("\x00{\"names\":{\"gateway_session_key\":\"k\"}}\n\x03{\"host\":\"h\",\"instance\":\"i\"}\n\x0c{\"item\":{\"receipt\":\"r\"}}"))
	f.Add([]byte("\x00{}\n\x0d{\"offer\":\"o\",\"items\":[\"r\",\"r\"]}\n\x09{\"turn\":\"t\",\"items\":[\"r\"]}\n\x08{}\n\x07{\"carry\":{\"items\":[{}]}}"))
	f.Add([]byte("\x00not json\n\xff{}\n\n\x11{\"exec\":\"a b\"}"))
	types := eventTypes()
	f.Fuzz(func(t *testing.T, log []byte) {
		var s lifecycle.State
		for i, line := range bytes.Split(log, []byte("\n")) {
			r := fuzzRecord(types, i, line)
			err := lifecycle.Fold(&s, r)
			var hole *lifecycle.HoleError
			if err != nil && !errors.As(err, &hole) {
				t.Fatalf("fold: %v", err)
			}
			if s.LastSequence != r.Sequence || s.LastOrdinal != r.Ordinal || s.LastTime.Before(r.Time) {
				t.Fatalf("position %+v after %+v", s.Position, r)
			}
			lifecycle.Effects(&s, r)
			s.Answer(r.Causation)
		}
		askEverything(&s)
	})
}

func eventTypes() []events.Type {
	var out []events.Type
	for _, e := range events.Catalogue() {
		if e.Class == events.ClassEvent {
			out = append(out, e.Type)
		}
	}
	return out
}

func fuzzRecord(types []events.Type, i int, line []byte) events.Record {
	r := events.Record{
		Time: start.Add(time.Duration(i) * time.Second), Source: gw1.Source(), Profile: profile,
		Scope: session.Scope(), Sequence: events.Sequence(i + 1), Ordinal: events.Ordinal(i + 1),
		Epoch: 1, Causation: events.CommandID([]byte{byte(i)}),
	}
	if len(line) > 0 {
		r.Type, r.Data = types[int(line[0])%len(types)], slices.Clone(line[1:])
	}
	return r
}

func askEverything(s *lifecycle.State) {
	mint := func() string { return "id" }
	s.View()
	lifecycle.Resume(s)
	for _, now := range []time.Time{start, start.Add(time.Hour)} {
		lifecycle.Owed(s, now, mint)
		lifecycle.Remind(s, start, now)
		for _, by := range []events.Principal{gw1, op, host, exe, self} {
			for _, data := range []any{
				events.Register{},
				events.Alias{},
				events.Attach{},
				events.Detach{},
				events.Reanchor{},
				events.Reset{},
				events.Finalize{},
				events.Submit{},
				events.Accept{},
				events.Decline{},
				events.End{},
				events.Interrupt{},
				events.StartExec{},
				events.StopExec{},
				events.ReportStarted{},
				events.ReportExited{},
				events.ReportLost{},
				lifecycle.HostLost{},
				lifecycle.ExecutorLost{},
				lifecycle.TurnTimeout{},
				lifecycle.BusStopped{},
			} {
				// Refusals are fine here; only a panic is not.
				_, _ = lifecycle.Decide(s, lifecycle.Command{Caller: by, Data: data, Now: now, Session: session, Mint: mint})
			}
		}
	}
}
