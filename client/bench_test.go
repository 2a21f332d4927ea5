package client_test

import (
	"fmt"
	"testing"

	"keryx/client"
	"keryx/events"
)

// BenchmarkDo is a command and its answer over loopback, without an authority's work.
func BenchmarkDo(b *testing.B) {
	s := startServer(b)
	respond(b, s, func(c command) { c.answer(named("S")) })
	conn := connect(b, s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Show(b.Context(), "x"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSeenLive is a command until a live follower has its durable event.
func BenchmarkSeenLive(b *testing.B) {
	bus := startBus(b)
	gw := bus.connect("gw", events.RoleGateway)
	n := 0
	var id events.SessionID
	var got <-chan heard
	for b.Loop() {
		if n%500 == 0 { // a session's queue is bounded
			key := fmt.Sprint("k", n)
			id = bus.register(gw, key)
			got = following(b, gw, client.FollowConfig{Scopes: []events.Scope{id.Scope()}})
			receive(b, "the registration", got)
		}
		n++
		if _, err := gw.Submit(b.Context(), events.Submit{To: string(id), Body: events.Body{Text: "m"}}); err != nil {
			b.Fatal(err)
		}
		receive(b, "the event", got)
	}
}
