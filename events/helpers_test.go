package events_test

import (
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"

	"keryx/events"
)

var update = flag.Bool("update", false, "rewrite golden files and docs/events.md")

var noon = time.Date(2026, 12, 1, 12, 0, 0, 5_000_000, time.UTC)

// minimal returns an event with the required attributes and no payload.
func minimal() events.Event {
	e := cloudevent.New()
	e.SetID("1")
	e.SetSource("/s")
	e.SetType("t")
	return e
}

// headers returns the required headers and those given as name, value pairs.
func headers(pairs ...string) nats.Header {
	h := nats.Header{"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-source": {"/s"}, "ce-type": {"t"}}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = []string{pairs[i+1]}
	}
	return h
}

// wantError fails the test unless err is an *events.Error of this code and path.
func wantError(t *testing.T, err error, code events.Code, path string) {
	t.Helper()
	var e *events.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want *events.Error %s at %q", err, code, path)
	}
	if e.Code != code || e.Path != path {
		t.Fatalf("error is %v, want %s at %q", err, code, path)
	}
	if e.Message == "" {
		t.Errorf("error %v has no message", err)
	}
}

func encode(t *testing.T, e events.Event) (nats.Header, []byte) {
	t.Helper()
	h, body, err := events.Encode(e)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	return h, body
}

func decode(t *testing.T, h nats.Header, body []byte) events.Event {
	t.Helper()
	e, err := events.Decode(h, body)
	if err != nil {
		t.Fatalf("Decode(%v): %v", h, err)
	}
	return e
}

// diff compares two events: attributes, payload bytes, absent payload apart from empty.
func diff(a, b events.Event) string {
	return cmp.Diff(a, b, cmpopts.IgnoreFields(events.Event{}, "DataBase64"))
}

// golden returns the content of a golden file, rewritten first under -update.
func golden(t *testing.T, path string, want []byte) []byte {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden file: %v (run go test -update)", err)
	}
	return b
}
