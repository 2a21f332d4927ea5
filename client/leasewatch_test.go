package client_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// A keeper that watches hears of the end of its lease when the bus writes it, long before
// the next renewal.
func TestAWatchedLeaseIsLostWhenTheBusWritesItsEnd(t *testing.T) {
	t.Parallel()
	fence := events.Fence{Generation: 1, Sequence: 7} // that of every grant of a leaseBus
	mine := events.LeaseRecord{State: events.LeaseHeld, Holder: "ex", Instance: "i1", TTLMS: 60000}
	ended := func(state events.LeaseState, f events.Fence) events.LeaseRecord {
		r := mine
		r.State, r.Fence, r.Reason = state, f, "moved"
		return r
	}
	theirs := mine
	theirs.Holder, theirs.Instance = "other", "i2"
	theirsEnded := theirs
	theirsEnded.State, theirsEnded.Fence = events.LeaseReleased, events.Fence{Generation: 1, Sequence: 6}
	for name, tc := range map[string]struct {
		records []events.LeaseRecord
		lost    bool
	}{
		"revoked":                           {[]events.LeaseRecord{mine, ended(events.LeaseRevoked, fence)}, true},
		"taken by another":                  {[]events.LeaseRecord{mine, theirs}, true},
		"expired":                           {[]events.LeaseRecord{mine, ended(events.LeaseExpired, fence)}, true},
		"no record any more":                {[]events.LeaseRecord{mine, {}}, true},
		"renewed":                           {[]events.LeaseRecord{mine, mine}, false},
		"another's end before the grant":    {[]events.LeaseRecord{theirsEnded, mine}, false},
		"the end of an older hold of ours":  {[]events.LeaseRecord{mine, ended(events.LeaseRevoked, events.Fence{Generation: 1, Sequence: 3})}, false},
		"another's record before the grant": {[]events.LeaseRecord{theirs}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			bus, holder := dialBare(t, s.ClientURL()), dialBare(t, s.ClientURL())
			lost := make(chan *client.Held, 1)
			k := client.NewKeeper(client.KeeperConfig{
				Caller: &leaseBus{}, Instance: "i1", NATS: holder, Logger: slog.New(slog.DiscardHandler),
				OnLost: func(h *client.Held) { lost <- h },
			})
			h, err := k.Acquire(t.Context(), leaseKey("t"), client.LeaseTerms{TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			heard := make(chan events.LeaseState, 16)
			stop, err := client.WatchLease(holder, leaseKey("t"), func(r events.LeaseRecord) { heard <- r.State })
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			if err := holder.Flush(); err != nil {
				t.Fatal(err)
			}
			for _, r := range tc.records {
				body, err := json.Marshal(r)
				if r.State == "" {
					body, err = nil, nil
				}
				if err != nil || bus.Publish(events.LeaseSubject(leaseKey("t")), body) != nil {
					t.Fatal(err)
				}
			}
			if tc.lost {
				select {
				case got := <-lost:
					if got != h || h.Valid() || !h.Final() || !isLost(h) {
						t.Errorf("lost %v: valid %v, final %v", isLost(h), h.Valid(), h.Final())
					}
				case <-time.After(10 * time.Second):
					t.Fatal("nobody was told")
				}
				return
			}
			for range tc.records {
				<-heard
			}
			if !h.Valid() || len(lost) != 0 {
				t.Error("the lease is lost")
			}
			h.Forget()
		})
	}
}

func dialBare(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
