package sessionlog_test

import (
	"testing"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
	"keryx/internal/sessionlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns the log of a fresh bus.
func open(t testing.TB, opts ...bustest.Option) (*sessionlog.Log, *broker.Broker) {
	t.Helper()
	b := bustest.Broker(t, opts...)
	return openOn(t, bustest.System(t, b)), b
}

func openOn(t testing.TB, nc *nats.Conn) *sessionlog.Log {
	t.Helper()
	l, err := sessionlog.Open(t.Context(), nc)
	if err != nil {
		t.Fatalf("open log: %v", err)
	}
	return l
}

func at(s events.Sequence) *events.Sequence { return &s }

func subjectOf(scope events.Scope) string { return events.LogSubject("main", scope) }

// message is an event of a scope as the authority writes it.
func message(t testing.TB, scope events.Scope, ordinal events.Ordinal, expect *events.Sequence) sessionlog.Message {
	t.Helper()
	e := cloudevent.New()
	e.SetID(events.NewID())
	e.SetType(string(events.TypeSessionIdle))
	e.SetSource("/profiles/main/principals/tester")
	e.SetSubject(string(scope))
	e.SetTime(time.Now().UTC())
	e.SetDataContentType("application/json")
	e.DataEncoded = []byte(`{"reason":"completed","big":12345678901234567890}`)
	e.SetExtension(events.ExtOrdinal, ordinal.String())
	h, body, err := events.Encode(e)
	if err != nil {
		t.Fatalf("encode event: %v", err)
	}
	return sessionlog.Message{Subject: subjectOf(scope), Header: h, Data: body, Expect: expect}
}

// fill appends n events to a scope and returns their sequences.
func fill(t testing.TB, l *sessionlog.Log, scope events.Scope, n int) []events.Sequence {
	t.Helper()
	out := make([]events.Sequence, 0, n)
	for i := range n {
		seq, err := l.Append(t.Context(), message(t, scope, events.Ordinal(i+1), nil))
		if err != nil {
			t.Fatalf("append event %d: %v", i+1, err)
		}
		out = append(out, seq)
	}
	return out
}
