package events_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"keryx/events"
)

func TestDecodeRecord_gives_the_typed_form(t *testing.T) {
	t.Parallel()
	h, body := encode(t, small())
	h["ce-sequence"] = []string{"1"} // whatever a writer said, the stream knows better
	for _, subject := range []string{"kx.log.default." + aSession, "kx.live.default." + aSession} {
		r, err := events.DecodeRecord(subject, 9, h, body)
		if err != nil {
			t.Fatal(err)
		}
		if r.Event == nil || r.Event.Extensions()[events.ExtSequence] != "9" {
			t.Errorf("the event's sequence is not set: %v", r.Event)
		}
		r.Event = nil
		want := events.Record{
			Type: events.TypeTurnEnded, ID: aCommand, Time: noon, Source: "/profiles/default/principals/shell",
			Profile: "default", Scope: aSession, Sequence: 9, Ordinal: 17, Epoch: 1, Turn: "01JTVRN0000000000000000000",
			Causation: aCommand, Data: body,
		}
		if d := cmp.Diff(want, r); d != "" {
			t.Errorf("record (-want +got):\n%s", d)
		}
		ended, err := events.DataOf[events.TurnEnded](r)
		if err != nil || ended.Reply != "hello" {
			t.Errorf("data is %+v, %v", ended, err)
		}
		if _, err := events.DataOf[[]int](r); err == nil {
			t.Error("an object was decoded into a list")
		}
	}
}

func TestDecodeRecord_reads_structured_events_too(t *testing.T) {
	t.Parallel()
	body := structured(`,"ordinal":3,"epoch":2,"turnid":"x"`)
	r, err := events.DecodeRecord("kx.log.default."+aSession, 9, nats.Header{"Content-Type": {"application/cloudevents+json"}}, body)
	if err != nil || r.Ordinal != 3 || r.Epoch != 2 || r.Turn != "x" {
		t.Errorf("record is %+v, %v", r, err)
	}
}

func TestDecodeRecord_shows_a_hole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		header  nats.Header
		path    string
		ordinal events.Ordinal
	}{
		{"no event at all", nats.Header{}, "specversion", 0},
		{"a broken attribute beside a good ordinal", headers("Ce-Ordinal", "5", "ce-note", "%FF"), "note", 5},
		{"no ordinal", headers(), events.ExtOrdinal, 0},
		{"ordinal zero", headers("ce-ordinal", "0"), events.ExtOrdinal, 0},
		{"an ordinal that is no number", headers("ce-ordinal", "x"), events.ExtOrdinal, 0},
		{"a negative ordinal", headers("ce-ordinal", "-1"), events.ExtOrdinal, 0},
		{"an epoch that is no number", headers("ce-ordinal", "5", "ce-epoch", "x"), events.ExtEpoch, 5},
		{"a negative epoch", headers("ce-ordinal", "5", "ce-epoch", "-1"), events.ExtEpoch, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := events.DecodeRecord("kx.log.default."+aSession, 9, c.header, []byte("x"))
			wantError(t, err, events.CodeUndecodable, c.path)
			if r.Profile != "default" || r.Scope != aSession || r.Sequence != 9 || r.Ordinal != c.ordinal {
				t.Errorf("hole is %+v", r)
			}
		})
	}
}

func TestDecodeRecord_refuses_other_subjects(t *testing.T) {
	t.Parallel()
	h, body := encode(t, small())
	if _, err := events.DecodeRecord("kx.cmd.default.a.b.c", 9, h, body); !errors.Is(err, events.ErrBadSubject) {
		t.Errorf("error is %v", err)
	}
}

func TestRecordOf_leaves_the_event_alone(t *testing.T) {
	t.Parallel()
	e := small()
	before := e.Clone()
	r, err := events.RecordOf("default", aSession, 9, e)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(before, e); d != "" {
		t.Errorf("the given event changed (-before +after):\n%s", d)
	}
	if r.Event.ID() != e.ID() || !r.Time.Equal(noon) || r.Time.Location() != time.UTC {
		t.Errorf("record is %+v", r)
	}
	if _, err := events.RecordOf("default", aSession, 9, events.Event{}); events.CodeOf(err) != events.CodeUndecodable {
		t.Errorf("an event without attributes gives %v", err)
	}
}

// A record is shown as a structured event with its place in the log.
func TestRecord_in_the_JSON_format(t *testing.T) {
	t.Parallel()
	r, err := events.RecordOf("default", aSession, 9, small())
	if err != nil {
		t.Fatal(err)
	}
	b, err := events.MarshalStructured(*r.Event)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if doc["sequence"] != "9" || doc["ordinal"] != "17" {
		t.Errorf("document is %s", b)
	}
}
