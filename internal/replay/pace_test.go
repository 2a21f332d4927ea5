package replay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"keryx/events"
	"keryx/internal/replay"
)

// clock notes when something was written.
type clock struct {
	bytes.Buffer
	begun time.Time
	at    []time.Duration
}

func (c *clock) Write(b []byte) (int, error) {
	c.at = append(c.at, time.Since(c.begun))
	return c.Buffer.Write(b)
}

func TestAPaceIsThatOfTheEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		pace replay.Pace
		want []time.Duration
	}{
		{"as it happened", replay.Pace{Speed: 1}, []time.Duration{0, 2 * time.Second, 3 * time.Second, 63500 * time.Millisecond}},
		{"ten times faster", replay.Pace{Speed: 10}, []time.Duration{0, 200 * time.Millisecond, 300 * time.Millisecond, 6350 * time.Millisecond}},
		{"long pauses cut", replay.Pace{Speed: 1, MaxPause: 1500 * time.Millisecond}, []time.Duration{0, 1500 * time.Millisecond, 2500 * time.Millisecond, 4 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				at := time.Date(2026, 12, 1, 2, 3, 4, 0, time.UTC)
				var rs []events.Record
				for i, after := range []time.Duration{0, 2 * time.Second, time.Second, 60500 * time.Millisecond} {
					at = at.Add(after)
					rs = append(rs, record(t, events.Ordinal(i+1), events.TypeSessionStarted, "bus", at, events.SessionStarted{Host: "h"}))
				}
				out := &clock{begun: time.Now()}
				if err := replay.Print(t.Context(), source{records: rs}, replay.NewJSONWriter(out), rs[0].Scope, replay.Query{Pace: &c.pace}); err != nil {
					t.Fatalf("print: %v", err)
				}
				if len(out.at) != len(c.want) {
					t.Fatalf("written at %v, want %v", out.at, c.want)
				}
				for i, want := range c.want {
					if out.at[i] != want {
						t.Errorf("event %d at %v, want %v", i+1, out.at[i], want)
					}
				}
			})
		})
	}
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	q := replay.Query{Pace: &replay.Pace{Speed: 0.001}}
	rs := story(t)
	if err := replay.Print(ctx, source{records: rs}, replay.NewWriter(io.Discard, replay.Options{}), rs[0].Scope, q); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

func TestASpeedThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	zero := 0.0
	for _, p := range []replay.Pace{{}, {Speed: -1}, {Speed: 1 / zero}, {Speed: zero / zero}, {Speed: 1, MaxPause: -1}} {
		if (replay.Query{Pace: &p}).Validate() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}
