package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// A record's attributes are parts of the header it came in, which the client of NATS keeps
// as one string. This test measures memory, so it runs beside no other.
func TestTheMemoryOfAnAnswerHoldsNoHeader(t *testing.T) {
	const turns, header = 1000, 8 << 10
	s := new(lifecycle.State)
	seq := events.Sequence(0)
	fold := func(typ events.Type, cause events.CommandID, data any) {
		body, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		seq++
		err = lifecycle.Fold(s, events.Record{
			Type: typ, Time: start.Add(time.Duration(seq) * time.Millisecond), Sequence: seq, Ordinal: events.Ordinal(seq),
			Scope: session.Scope(), Epoch: 1, Source: host.Source(), Causation: cause, Data: body,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	inHeader := func(i int) events.CommandID {
		return events.CommandID((fmt.Sprintf("01JCOMMAND%016d", i) + strings.Repeat("x", header))[:26])
	}
	fold(events.TypeSessionRegistered, inHeader(0), events.SessionRegistered{})
	before := heap()
	for i := range turns {
		turn := events.TurnID(fmt.Sprintf("01JTURN%019d", i))
		fold(events.TypeTurnStarted, inHeader(2*i+1), events.TurnStarted{Turn: turn})
		fold(events.TypeTurnEnded, inHeader(2*i+2), events.TurnEnded{Turn: turn, Outcome: events.OutcomeCompleted})
		fold(events.TypeSessionIdle, "", events.SessionIdle{Turn: turn})
	}
	grown := heap() - before
	runtime.KeepAlive(s)
	if most := int64(turns * header / 2); grown > most {
		t.Errorf("%d turns hold %d KB, more than %d", turns, grown>>10, most>>10)
	}
	if _, known := s.Answer(inHeader(2 * turns)); !known {
		t.Error("the last answer is not known")
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
