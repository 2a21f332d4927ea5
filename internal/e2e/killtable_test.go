package e2e_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"keryx/events"
)

// The steps of a message and of a steer that follows it. A process is killed after one.
const (
	submitted  = iota // on disk, and its sender has not heard of it
	waiting           // the sender knows; no host is attached
	offered           // the host was told
	accepted          // on disk, and the host has not heard of it
	running           // the host knows
	steerTold         // a steer was offered
	steerTaken        // and accepted
	ended             // on disk, and the host has not heard of it
)

var stepNames = []string{"submitted", "waiting", "offered", "accepted", "running", "steer told", "steer taken", "ended"}

// stage is a message on its way through processes: a bus, and puppets as its sender and its
// host. Each step is reached for certain: a puppet does one thing and stops, and what is on
// disk is seen in the record.
type stage struct {
	*bench
	t        *testing.T
	g        *gateway // this process, which learns what became of it
	bus      *process
	sender   *controlled
	host     *controlled
	session  events.SessionID
	caps     []events.Capability
	lastID   events.CommandID // of the command whose answer was not waited for
	last     any
	fence    events.Fence
	offer    events.OfferID
	turn     events.TurnID
	message  events.ReceiptID
	steer    events.ReceiptID
	leaseTTL time.Duration
}

func newStage(t *testing.T, lease time.Duration, caps ...events.Capability) *stage {
	t.Helper()
	s := &stage{bench: newBench(t), t: t, caps: append(caps, events.CapSteer), leaseTTL: lease}
	s.bus = s.serving()
	s.g = s.gateway()
	s.session = s.g.register("k")
	s.sender = s.puppet("gw")
	return s
}

var message = events.Submit{To: "k", IdempotencyKey: "m", Body: events.Body{Text: "m"}}

// step does one step.
func (s *stage) step(n int) {
	s.t.Helper()
	switch n {
	case submitted:
		s.lose(s.sender, events.CmdContinuationSubmit, events.TypeContinuationQueued, message)
	case waiting:
		s.message = learn[events.Receipt](s, s.sender, events.CmdContinuationSubmit).ID
	case offered:
		s.attach()
		s.offer = order[events.Offer](s.host, events.HostOffer).Offer
	case accepted:
		s.turn = events.TurnID(events.NewID())
		s.lose(s.host, events.CmdTurnAccept, events.TypeTurnStarted, s.taking())
	case running:
		if a := learn[events.Accepted](s, s.host, events.CmdTurnAccept); a.Turn != s.turn {
			s.t.Errorf("a repeated accept was answered with turn %s, want %s", a.Turn, s.turn)
		}
	case steerTold:
		s.steer = s.g.say("k", "s", events.ModeSteer)
		s.offer = order[events.Steer](s.host, events.HostSteer).Offer
	case steerTaken:
		ask[events.Accepted](s.host, events.CmdTurnAccept, s.taking())
	case ended:
		s.lose(s.host, events.CmdTurnEnd, events.TypeTurnEnded, events.End{Session: s.session, Fence: s.fence, Turn: s.turn, Outcome: events.OutcomeCompleted})
	}
}

func (s *stage) to(step int) {
	s.t.Helper()
	for n := range step + 1 {
		s.step(n)
	}
}

func (s *stage) attach() {
	s.t.Helper()
	s.host = s.puppet("sh")
	s.fence = ask[events.Attached](s.host, events.CmdSessionAttach, events.Attach{
		Session: s.session, Instance: s.host.instance, Capabilities: s.caps, LeaseTTLMS: s.leaseTTL.Milliseconds(),
	}).Fence
}

func (s *stage) taking() events.Accept {
	return events.Accept{Session: s.session, Fence: s.fence, Offer: s.offer, Turn: s.turn}
}

// lose sends a command whose answer nobody waits for, and waits until the record shows it.
func (s *stage) lose(p *controlled, t, shows events.Type, data any) {
	s.t.Helper()
	before := len(s.record(shows))
	s.lastID, s.last = events.CommandID(events.NewID()), data
	p.send(t, s.lastID, true, data)
	s.await(shows.Short(), 30*time.Second, func() bool { return len(s.record(shows)) > before })
}

// learn sends that command once more, as a process that got no answer does.
func learn[A any](s *stage, p *controlled, t events.Type) (a A) {
	s.t.Helper()
	p.send(t, s.lastID, false, s.last)
	r := receive(s.t, "the answer to a repeated "+t.Short(), p.answers)
	if err := json.Unmarshal(r.Data, &a); err != nil || r.Status != events.StatusOK {
		s.t.Fatalf("a repeated %s was answered %s: %s", t.Short(), r.Status, r.Data)
	}
	return a
}

// record returns the session's events of some types.
func (s *stage) record(types ...events.Type) (out []events.Record) {
	s.t.Helper()
	return s.g.record(s.session, types...)
}

func (g *gateway) record(id events.SessionID, types ...events.Type) (out []events.Record) {
	g.t.Helper()
	page, err := g.Page(g.within(30*time.Second), id.Scope(), 0, 0)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, r := range page.Records {
		if len(types) == 0 || slices.Contains(types, r.Type) {
			out = append(out, r)
		}
	}
	return out
}

// audit checks that every item was accepted at most once, that every turn ended once, and
// that no event is missing.
func (g *gateway) audit(id events.SessionID) {
	g.t.Helper()
	items, turns := map[events.ReceiptID]int{}, map[events.TurnID]int{}
	for i, r := range g.record(id) {
		if r.Ordinal != events.Ordinal(i+1) {
			g.t.Errorf("event %d has ordinal %s", i+1, r.Ordinal)
		}
		switch d, _ := events.DataOf[events.TurnSteered](r); r.Type {
		case events.TypeTurnStarted, events.TypeTurnSteered:
			for _, id := range d.Items {
				items[id]++
			}
			turns[d.Turn] += 0
		case events.TypeTurnEnded:
			turns[d.Turn]++
		}
	}
	for id, n := range items {
		if n != 1 {
			g.t.Errorf("item %s was accepted %d times", id, n)
		}
	}
	for id, n := range turns {
		if n != 1 {
			g.t.Errorf("turn %s ended %d times", id, n)
		}
	}
}

func eachStep(t *testing.T, f func(t *testing.T, step int)) {
	t.Helper()
	steps(t, []int{submitted, waiting, offered, accepted, running, steerTold, steerTaken, ended}, f)
}

func steps(t *testing.T, which []int, f func(t *testing.T, step int)) {
	t.Helper()
	for _, step := range which {
		t.Run("when it is "+stepNames[step], func(t *testing.T) {
			t.Parallel()
			f(t, step)
		})
	}
}

func TestABusKilledAtEachStepOfAMessageLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	eachStep(t, func(t *testing.T, step int) {
		t.Helper()
		s := newStage(t, time.Minute, events.CapIdempotentOffer)
		s.to(step)
		s.bus.kill()
		s.serving()
		for n := step + 1; n <= ended; n++ {
			s.step(n)
		}
		if e := learn[events.Ended](s, s.host, events.CmdTurnEnd); e.Turn != s.turn || e.Outcome != events.OutcomeCompleted || e.Late {
			t.Errorf("the repeated end was answered %+v", e)
		}
		for _, id := range []events.ReceiptID{s.message, s.steer} {
			if r := s.g.reaches(id, events.StateSettled); r.Turn != s.turn || r.Outcome != events.OutcomeCompleted {
				t.Errorf("receipt %+v", r)
			}
		}
		if n := len(s.record(events.TypeContinuationUnresolved, events.TypeSessionDetached)); n != 0 {
			t.Errorf("%d events say that something was lost", n)
		}
		s.g.audit(s.session)
	})
}

func TestAHostKilledAtEachStepOfAMessageLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	t.Run("one that knows its offers", func(t *testing.T) {
		t.Parallel()
		eachStep(t, func(t *testing.T, step int) {
			t.Helper()
			killHost(t, step, true)
		})
	})
	t.Run("one that does not", func(t *testing.T) {
		t.Parallel()
		which := []int{offered} // where it makes a difference; a release is tried with all
		if _, all := os.LookupEnv("KERYX_TEST_RUNS"); all {
			which = []int{waiting, offered, accepted, running, steerTold, steerTaken, ended}
		}
		steps(t, which, func(t *testing.T, step int) {
			t.Helper()
			killHost(t, step, false)
		})
	})
}

func killHost(t *testing.T, step int, knows bool) {
	t.Helper()
	var caps []events.Capability
	if knows {
		caps = append(caps, events.CapIdempotentOffer)
	}
	s := newStage(t, 2*time.Second, caps...)
	s.to(step)
	if step == submitted {
		s.step(waiting)
	}
	if s.host != nil {
		s.host.kill()
	}
	next := s.jsHost() // takes over when the lease has run out
	unresolved := step == offered && !knows
	if unresolved { // nobody can know whether it ran
		s.g.reaches(s.message, events.StateUnresolved)
		s.run("bus", "requeue", string(s.message), "--dir", s.store())
	}
	began := step >= accepted
	want := events.OutcomeCompleted
	if began && step < ended {
		want = events.OutcomeLost // it may have run, and nobody knows how far
	}
	if got := s.g.reaches(s.message, events.StateSettled).Outcome; got != want {
		t.Errorf("the message was %s, want %s", got, want)
	}
	if step >= steerTold {
		if step != steerTaken {
			want = events.OutcomeCompleted // a steer that was not taken is the next turn
		}
		if got := s.g.reaches(s.steer, events.StateSettled).Outcome; got != want && step != ended {
			t.Errorf("the steer was %s, want %s", got, want)
		}
	}
	if n := next.did("begin")[string(s.message)]; n != 0 && began || n != 1 && !began {
		t.Errorf("the next host began the message %d times", n)
	}
	if n := len(s.record(events.TypeContinuationUnresolved)); (n > 0) != unresolved {
		t.Errorf("%d unresolved events", n)
	}
	s.g.audit(s.session)
}

func TestASenderKilledAtEachStepLearnsWhatBecameOfItsMessage(t *testing.T) {
	t.Parallel()
	fates := []events.Fate{
		submitted: events.FateNeverStarted, waiting: events.FateNeverStarted, offered: events.FateNeverStarted,
		accepted: events.FateRunning, running: events.FateRunning, steerTold: events.FateRunning, steerTaken: events.FateRunning,
		ended: events.FateEnded,
	}
	eachStep(t, func(t *testing.T, step int) {
		t.Helper()
		s := newStage(t, time.Minute, events.CapIdempotentOffer)
		s.to(step)
		s.sender.kill()
		var r struct {
			ID   events.ReceiptID
			Fate events.Fate
		}
		out := s.run("bus", "submit", "k", "m", "--idempotency-key", "m", "--json", "--url", s.url(), "--creds", s.creds("gw"))
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if s.message != "" && r.ID != s.message || r.Fate != fates[step] {
			t.Errorf("the sender was told %+v, want receipt %s and %s", r, s.message, fates[step])
		}
		if n := len(s.record(events.TypeTurnStarted)); n > 1 {
			t.Errorf("%d turns were started", n)
		}
		once := 0
		for _, q := range s.record(events.TypeContinuationQueued) {
			if d, err := events.DataOf[events.ContinuationQueued](q); err == nil && d.Item.IdempotencyKey == "m" {
				once++
			}
		}
		if once != 1 {
			t.Errorf("the message was queued %d times", once)
		}
	})
}
