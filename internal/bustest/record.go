package bustest

import (
	"testing"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// Fact is an event to be put on record as it is.
type Fact struct {
	Type events.Type
	At   time.Time
	Data any
	// Broken makes it one that nobody can decode.
	Broken bool
}

// recordBatch is how many events are appended at once.
const recordBatch = 500

// Record puts n events on the record of a scope that is empty, without asking an
// authority: it has to be done before one serves. fact is called for 1 to n.
func Record(t testing.TB, nc *nats.Conn, p events.Profile, scope events.Scope, n int, fact func(i int) Fact) {
	t.Helper()
	log, err := sessionlog.Open(t.Context(), nc)
	if err != nil {
		t.Fatalf("open the log: %v", err)
	}
	var batch []sessionlog.Message
	for i := 1; i <= n; i++ {
		header, body := encodeFact(t, p, scope, i, fact(i))
		batch = append(batch, sessionlog.Message{Subject: events.LogSubject(p, scope), Header: header, Data: body})
		if len(batch) < recordBatch && i < n {
			continue
		}
		if _, err := log.AppendBatch(t.Context(), batch); err != nil {
			t.Fatalf("put events up to %d on record: %v", i, err)
		}
		batch = batch[:0]
	}
}

// RecordMore puts events on a record that ends at the ordinal last, as an authority that
// was killed right after them would have. None may serve meanwhile.
func RecordMore(t testing.TB, nc *nats.Conn, p events.Profile, scope events.Scope, last events.Ordinal, facts ...Fact) {
	t.Helper()
	log, err := sessionlog.Open(t.Context(), nc)
	if err != nil {
		t.Fatalf("open the log: %v", err)
	}
	for i, f := range facts {
		header, body := encodeFact(t, p, scope, int(last)+1+i, f)
		if _, err := log.Append(t.Context(), sessionlog.Message{Subject: events.LogSubject(p, scope), Header: header, Data: body}); err != nil {
			t.Fatalf("put %s on record: %v", f.Type, err)
		}
	}
}

func encodeFact(t testing.TB, p events.Profile, scope events.Scope, i int, f Fact) (nats.Header, []byte) {
	t.Helper()
	if f.Broken {
		return nats.Header{"Content-Type": {"application/cloudevents+json"}}, []byte("\xff{not an event")
	}
	body, err := events.MarshalData(f.Data)
	if err != nil {
		t.Fatalf("encode event %d: %v", i, err)
	}
	e := cloudevent.New()
	e.SetID(events.NewID())
	e.SetType(string(f.Type))
	e.SetSource(events.Source(p, events.AuthorityName))
	e.SetSubject(string(scope))
	e.SetTime(f.At.UTC())
	e.SetDataSchema(f.Type.Schema())
	e.SetDataContentType("application/json")
	e.SetExtension(events.ExtOrdinal, events.Ordinal(i).String())
	e.SetExtension(events.ExtEpoch, "1")
	e.DataEncoded = body
	header, data, err := events.Encode(e)
	if err != nil {
		t.Fatalf("encode event %d: %v", i, err)
	}
	return header, data
}
