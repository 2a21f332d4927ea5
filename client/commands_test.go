package client_test

import (
	"slices"
	"testing"

	"keryx/events"
)

func TestSessionsGoesThroughAllPagesAndStopsWhenToldTo(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	all := []events.SessionID{"a", "b", "c", "d", "e"}
	asked := 0
	respond(t, s, func(c command) {
		asked++
		q := ask[events.SessionList](c)
		page := events.Sessions{Sessions: []events.SessionSummary{}}
		for _, id := range all {
			if id > q.After && len(page.Sessions) < 2 {
				page.Sessions = append(page.Sessions, events.SessionSummary{Session: id})
			}
		}
		if n := len(page.Sessions); n > 0 {
			page.More = page.Sessions[n-1].Session < all[len(all)-1]
		}
		c.answer(page)
	})
	conn := connect(t, s)
	var got []events.SessionID
	for s, err := range conn.Sessions(t.Context(), events.SessionList{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Session)
	}
	if !slices.Equal(got, all) || asked != 3 {
		t.Errorf("got %v with %d questions", got, asked)
	}
	for range conn.Sessions(t.Context(), events.SessionList{}) {
		break
	}
	if asked != 4 {
		t.Errorf("stopping asked %d times", asked-3)
	}
}

func TestTipsOfManyScopesAreAskedForInCallsOfAThousand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	respond(t, s, func(c command) {
		q := ask[events.LogTips](c)
		if len(q.Scopes) > 1000 {
			t.Errorf("asked for %d at once", len(q.Scopes))
		}
		a := events.Tips{Tips: []events.Tip{}}
		for _, s := range q.Scopes {
			a.Tips = append(a.Tips, events.Tip{Scope: s})
		}
		c.answer(a)
	})
	var scopes []events.Scope
	for range 2500 {
		scopes = append(scopes, scopeID())
	}
	tips, err := connect(t, s).Tips(t.Context(), scopes...)
	if err != nil || len(tips) != len(scopes) {
		t.Errorf("got %d tips, %v; want %d", len(tips), err, len(scopes))
	}
}
