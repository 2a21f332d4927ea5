package replay_test

import (
	"encoding/json"
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"keryx/events"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record makes an event as it is read from the log.
func record(t testing.TB, n events.Ordinal, typ events.Type, who events.PrincipalName, at time.Time, data any) events.Record {
	t.Helper()
	body, err := json.Marshal(data)
	if err != nil {
		t.Fatalf("encode %s: %v", typ, err)
	}
	e := events.Event{}
	e.SetSpecVersion("1.0")
	e.SetID("01K0000000000000000000000" + string(rune('A'+n%26)))
	e.SetType(string(typ))
	e.SetSource(events.Source("default", who))
	e.SetSubject("01K0SESSION000000000000000")
	e.SetTime(at)
	e.SetDataContentType("application/json")
	e.SetDataSchema(typ.Schema())
	e.SetExtension(events.ExtOrdinal, n.String())
	e.SetExtension(events.ExtEpoch, "1")
	e.DataEncoded = body
	r, err := events.RecordOf("default", "01K0SESSION000000000000000", events.Sequence(10+n), e)
	if err != nil {
		t.Fatalf("record %s: %v", typ, err)
	}
	return r
}
