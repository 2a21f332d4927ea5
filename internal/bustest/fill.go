package bustest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/sessionlog"
)

// EventsEach is how many events a session has that [Fill] writes.
const EventsEach = 20

// Fill writes sessions with a past into a broker's log, as fast as it takes them, and
// returns their ids. Their events lie spread over the log, as those of sessions do that
// live side by side; session i has the names k:i and s:i, and nothing is going on in it.
func Fill(t testing.TB, b *broker.Broker, sessions int) []events.SessionID {
	t.Helper()
	log, err := sessionlog.Open(t.Context(), System(t, b))
	if err != nil {
		t.Fatalf("fill: %v", err)
	}
	s := &store{t: t, log: log, time: time.Now().Add(-time.Hour)}
	return s.fill(sessions)
}

// store writes sessions with a past, as fast as the log takes them.
type store struct {
	t     testing.TB
	log   *sessionlog.Log
	batch []sessionlog.Message
	n     int
	time  time.Time
}

func (s *store) add(m sessionlog.Message) {
	s.batch = append(s.batch, m)
	if s.n++; len(s.batch) == 1000 {
		s.flush()
	}
}

func (s *store) flush() {
	s.t.Helper()
	if len(s.batch) == 0 {
		return
	}
	if _, err := s.log.AppendBatch(s.t.Context(), s.batch); err != nil {
		s.t.Fatal(err)
	}
	s.batch = s.batch[:0]
}

func (s *store) name(n events.Name, id events.SessionID) {
	s.t.Helper()
	body, err := events.MarshalData(events.NameRecord{Name: n, Session: id, Epoch: 1, Owner: "gw"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.add(sessionlog.Message{Subject: events.IDSubject("default", n), Data: body})
}

func (s *store) event(id events.SessionID, ordinal int, typ events.Type, turn events.TurnID, data any) {
	s.t.Helper()
	body, err := events.MarshalData(data)
	if err != nil {
		s.t.Fatal(err)
	}
	s.time = s.time.Add(time.Millisecond)
	header := nats.Header{}
	for name, v := range map[string]string{
		"specversion": "1.0", "id": events.NewID(), "type": string(typ), "source": events.Source("default", "gw"),
		"subject": string(id), "time": s.time.UTC().Format(time.RFC3339Nano), "dataschema": typ.Schema(),
		"datacontenttype": "application/json", events.ExtOrdinal: strconv.Itoa(ordinal), events.ExtEpoch: "1",
		events.ExtTurn: string(turn), events.ExtCausation: events.NewID(),
	} {
		if v != "" {
			header.Set("ce-"+name, v)
		}
	}
	s.add(sessionlog.Message{Subject: events.LogSubject("default", id.Scope()), Header: header, Data: body})
}

// fill writes sessions whose events lie spread over the log.
func (s *store) fill(sessions int) []events.SessionID {
	s.t.Helper()
	ids := make([]events.SessionID, sessions)
	for i := range ids {
		ids[i] = events.SessionID(events.NewID())
		names := events.Names{
			GatewaySessionKey: events.GatewaySessionKey(fmt.Sprint("k:", i)), StoredSessionID: events.StoredSessionID(fmt.Sprint("s:", i)),
		}
		for _, n := range names.Records() {
			s.name(n, ids[i])
		}
		s.event(ids[i], 1, events.TypeSessionRegistered, "", events.SessionRegistered{
			Names: names, Owner: "gw", Policy: events.Policy{Hosts: []events.PrincipalName{"sh"}},
		})
	}
	for round := range (EventsEach - 1) / 4 {
		for i, id := range ids {
			s.turn(id, 2+4*round, i)
		}
	}
	for _, id := range ids {
		for n := 2 + 4*((EventsEach-1)/4); n <= EventsEach; n++ {
			s.event(id, n, events.TypeSessionAliased, "", events.SessionAliased{Names: events.Names{Home: fmt.Sprint("/home/", n)}, Owner: "gw"})
		}
	}
	s.flush()
	return ids
}

// turn writes the four events of one message and its turn.
func (s *store) turn(id events.SessionID, ordinal, i int) {
	s.t.Helper()
	receipt, turn := events.ReceiptID(events.NewID()), events.TurnID(events.NewID())
	items := []events.ReceiptID{receipt}
	s.event(id, ordinal, events.TypeContinuationQueued, "", events.ContinuationQueued{Item: events.Item{
		Receipt: receipt, Kind: events.ItemUser, Mode: events.ModeEnqueue, Sender: "gw", Epoch: 1, QueuedAt: s.time,
		OnReset: events.OnResetCarry, Body: events.Body{Text: fmt.Sprint("message ", ordinal, " of session ", i)},
	}})
	s.event(id, ordinal+1, events.TypeTurnStarted, turn, events.TurnStarted{Turn: turn, Offer: events.OfferID(events.NewID()), Items: items, Host: "sh", Instance: "i"})
	s.event(id, ordinal+2, events.TypeTurnEnded, turn, events.TurnEnded{Turn: turn, Outcome: events.OutcomeCompleted, Settled: items, Reply: "done"})
	s.event(id, ordinal+3, events.TypeSessionIdle, turn, events.SessionIdle{Turn: turn, Reason: events.OutcomeCompleted, Since: s.time})
}
