package leases_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"keryx/events"
	"keryx/internal/leases"
)

const electorTTL = 3 * time.Second

// candidate is an elector with what became of it.
type candidate struct {
	name events.Instance
	lead func(context.Context) error

	mu      sync.Mutex
	terms   int
	leading bool
	since   time.Time
	lost    error
	done    chan error
}

func (c *candidate) leads() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leading
}

// run stands until ctx ends; a term lasts until its own context does.
func (c *candidate) run(ctx context.Context, e *leases.Elector) {
	c.done = make(chan error, 1)
	go func() {
		c.done <- e.Run(ctx, func(ctx context.Context) error {
			c.mu.Lock()
			c.terms, c.leading, c.since = c.terms+1, true, time.Now()
			c.mu.Unlock()
			var err error
			if c.lead != nil {
				err = c.lead(ctx)
			} else {
				<-ctx.Done()
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.leading, c.lost = false, context.Cause(ctx)
			return err
		})
	}()
}

func electorConfig(name events.Instance) leases.ElectorConfig {
	begun := time.Now()
	return leases.ElectorConfig{
		Key: events.AuthorityLease, Holder: "authority", Instance: name, TTL: electorTTL, Logger: quiet,
		Clock: func() time.Duration { return time.Hour + time.Since(begun) },
	}
}

func stand(ctx context.Context, t *testing.T, m *leases.Memory, c *candidate, change ...func(*leases.ElectorConfig)) *candidate {
	t.Helper()
	cfg := electorConfig(c.name)
	for _, f := range change {
		f(&cfg)
	}
	e, err := leases.NewElectorOn(m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.run(ctx, e)
	synctest.Wait()
	return c
}

func TestOneOfTwoCandidatesLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		ctx, cancel := context.WithCancel(t.Context())
		a := stand(ctx, t, m, &candidate{name: "a"})
		b := stand(ctx, t, m, &candidate{name: "b"})
		for range 100 {
			if !a.leads() || b.leads() {
				t.Fatalf("a leads: %v, b leads: %v", a.leads(), b.leads())
			}
			after(time.Second)
		}
		cancel()
		for _, c := range []*candidate{a, b} {
			if err := <-c.done; err != nil {
				t.Errorf("Run of %s: %v", c.name, err)
			}
		}
		if a.terms != 1 || b.terms != 0 {
			t.Errorf("a led %d times, b %d", a.terms, b.terms)
		}
	})
}

func TestACleanReleaseHandsOverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		aCtx, stopA := context.WithCancel(t.Context())
		a := stand(aCtx, t, m, &candidate{name: "a"})
		bCtx, stopB := context.WithCancel(t.Context())
		b := stand(bCtx, t, m, &candidate{name: "b"})
		after(10 * time.Second)
		stopA()
		<-a.done
		synctest.Wait()
		if !b.leads() {
			t.Error("b does not lead at the moment a has given back the lease")
		}
		stopB()
		<-b.done
		if rec := m.Record(events.AuthorityLease); rec.State != events.LeaseReleased || rec.Instance != "b" {
			t.Errorf("at the end the record is %+v", rec)
		}
	})
}

func TestACrashedLeaderIsFollowedWithinItsTTLAndASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		m.Put(events.AuthorityLease, events.LeaseRecord{
			State: events.LeaseHeld, Holder: "authority", Instance: "a", TTLMS: electorTTL.Milliseconds(),
		})
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		b := stand(ctx, t, m, &candidate{name: "b"})
		after(time.Second)
		c := stand(ctx, t, m, &candidate{name: "c"})
		after(electorTTL - 1100*time.Millisecond)
		if b.leads() || c.leads() {
			t.Fatal("somebody leads before the ttl has passed")
		}
		after(1100 * time.Millisecond)
		if !b.leads() || c.leads() {
			t.Fatalf("%v after the crash b leads: %v, c leads: %v", time.Since(begun), b.leads(), c.leads())
		}
		if took := b.since.Sub(begun); took > electorTTL+time.Second {
			t.Errorf("b took over after %v", took)
		}
		cancel()
		<-b.done
		<-c.done
	})
}

func TestALeaderThatCannotRenewStopsBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		ctx, cancel := context.WithCancel(t.Context())
		var stopped time.Duration
		begun := time.Now()
		a := stand(ctx, t, m, &candidate{name: "a", lead: func(ctx context.Context) error {
			<-ctx.Done()
			stopped = time.Since(begun)
			return nil
		}})
		after(20 * time.Second)
		m.Fail(errors.New("the server is gone"))
		failed := time.Since(begun)
		after(electorTTL)
		if a.leads() || !errors.Is(a.lost, leases.ErrLeadershipLost) {
			t.Fatalf("a ttl after the last renewal a leads: %v, cause %v", a.leads(), a.lost)
		}
		if trust := stopped - failed; trust > electorTTL*9/10 {
			t.Errorf("a led for %v after the failure", trust)
		}
		m.Fail(nil)
		after(time.Second)
		if !a.leads() || a.terms != 2 {
			t.Errorf("with the server back a leads: %v, for the %d. time", a.leads(), a.terms)
		}
		cancel()
		<-a.done
	})
}

func TestALeaderWhoseLeaseIsTakenStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		ctx, cancel := context.WithCancel(t.Context())
		a := stand(ctx, t, m, &candidate{name: "a"})
		usurper := stand(ctx, t, m, &candidate{name: "b"}, func(c *leases.ElectorConfig) { c.SoleOwner = true })
		if !usurper.leads() {
			t.Fatal("the sole owner of the store waits for a dead instance of its own")
		}
		after(electorTTL / 3)
		if a.leads() || !errors.Is(a.lost, leases.ErrLeadershipLost) {
			t.Errorf("at its next renewal a leads: %v, cause %v", a.leads(), a.lost)
		}
		cancel()
		<-a.done
		<-usurper.done
	})
}

func TestRunReturnsTheLeadersError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := leases.NewMemory()
		broken := errors.New("broken")
		a := stand(t.Context(), t, m, &candidate{name: "a", lead: func(context.Context) error { return broken }})
		if err := <-a.done; !errors.Is(err, broken) {
			t.Errorf("Run = %v", err)
		}
		if rec := m.Record(events.AuthorityLease); rec.State != events.LeaseReleased {
			t.Errorf("the lease is left %s", rec.State)
		}
	})
}

func TestAnElectorNeedsTwoSeconds(t *testing.T) {
	t.Parallel()
	cfg := electorConfig("a")
	cfg.TTL = 1999 * time.Millisecond
	if _, err := leases.NewElectorOn(leases.NewMemory(), cfg); err == nil {
		t.Error("a ttl below 2 s was taken")
	}
}
