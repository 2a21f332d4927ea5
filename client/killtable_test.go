package client_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// The steps of a message and of a steer that follows it. A kill comes after one of them.
const (
	submitted  = iota // on record, the answer on its way
	waiting           // the sender knows; no host is attached
	offered           // the host was told
	accepted          // on record, the answer on its way
	running           // the host knows
	steerTold         // a steer was offered
	steerTaken        // and accepted
	ended             // on record, the answer on its way
)

var stepNames = []string{"submitted", "waiting", "offered", "accepted", "running", "steer told", "steer taken", "ended"}

// scene is a message on its way, driven by hand.
type scene struct {
	*bus
	session   events.SessionID
	gw, host  *client.Conn
	gwCreds   client.Credentials
	hostCreds client.Credentials
	fence     events.Fence
	caps      []events.Capability
	lease     time.Duration
	told      chan *nats.Msg
	offer     events.OfferID
	turn      events.TurnID
	message   events.ReceiptID
	steer     events.ReceiptID
	cut       *sentCommand // whose answer was lost
}

func newScene(t *testing.T, caps ...events.Capability) *scene {
	t.Helper()
	s := &scene{bus: startBus(t), lease: time.Minute, caps: append(caps, events.CapSteer), told: make(chan *nats.Msg, 64)}
	s.gwCreds = addPrincipal(t, s.node.Broker(), "gw", events.RoleGateway)
	s.hostCreds = addPrincipal(t, s.node.Broker(), "agent", events.RoleHost)
	s.gw, s.host = s.dial(s.gwCreds), s.dial(s.hostCreds)
	s.session = s.register(s.gw, "k")
	return s
}

// dial connects a process; closed when the test ends, or killed before.
func (s *scene) dial(creds client.Credentials) *client.Conn {
	s.t.Helper()
	c, err := client.Connect(s.t.Context(), client.Config{URL: s.node.Broker().URL(), Credentials: creds, Logger: quiet()})
	if err != nil {
		s.t.Fatalf("connect: %v", err)
	}
	s.t.Cleanup(func() { mustClose(s.t, c) })
	return c
}

// sentCommand is a command that was published without waiting for its answer.
type sentCommand struct {
	conn  *client.Conn
	event events.Event
}

// lost publishes a command and waits until the log shows it, not for its answer.
func (s *scene) lost(c *client.Conn, typ, shows events.Type, data any) {
	s.t.Helper()
	ev, err := events.NewCommand(c.Principal(), typ, events.CommandID(events.NewID()), time.Now(), data)
	if err != nil {
		s.t.Fatal(err)
	}
	before := s.types(s.gw, s.session)[shows.Short()]
	s.cut = &sentCommand{conn: c, event: ev}
	s.cut.publish(s.t, events.InboxPrefix(profile, c.Principal().Name)+".nobody")
	await(s.t, shows.Short(), func() bool { return s.types(s.gw, s.session)[shows.Short()] > before })
}

func (c *sentCommand) publish(t testing.TB, reply string) {
	t.Helper()
	m, err := commandMsg(c.event)
	if err != nil {
		t.Fatal(err)
	}
	m.Reply = reply
	if err := c.conn.NATS().PublishMsg(m); err != nil {
		t.Fatal(err)
	}
}

func commandMsg(ev events.Event) (*nats.Msg, error) {
	header, body, err := events.Encode(ev)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(ev.Source(), "/")
	subject, err := events.CmdSubject(profile, events.PrincipalName(parts[len(parts)-1]), events.Type(ev.Type()))
	if err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: subject, Header: header, Data: body}, nil
}

// again sends the cut command once more, as its sender would, and decodes the answer.
func (s *scene) again(answer any) {
	s.t.Helper()
	inbox := events.InboxPrefix(profile, s.cut.conn.Principal().Name) + "." + events.NewID()
	sub, err := s.cut.conn.NATS().SubscribeSync(inbox)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	await(s.t, "the answer to a repeat", func() bool {
		s.cut.publish(s.t, inbox)
		m, err := sub.NextMsg(time.Second)
		if err != nil || m.Header.Get(events.HeaderStatus) != events.StatusOK {
			return false
		}
		return json.Unmarshal(m.Data, answer) == nil
	})
	s.cut = nil
}

func (s *scene) attach() {
	s.t.Helper()
	p := s.host.Principal()
	if _, err := s.host.NATS().ChanSubscribe(events.HostAll(p.Profile, p.Name, s.host.Instance()), s.told); err != nil {
		s.t.Fatal(err)
	}
	if err := s.host.NATS().Flush(); err != nil {
		s.t.Fatal(err)
	}
	s.reattach()
}

func (s *scene) reattach() {
	s.t.Helper()
	a, err := s.host.Attach(within(s.t, 15*time.Second), events.Attach{Session: s.session, Capabilities: s.caps, LeaseTTLMS: s.lease.Milliseconds()})
	if err != nil {
		s.t.Fatalf("attach: %v", err)
	}
	s.fence = a.Fence
}

// to does the steps up to one.
func (s *scene) to(step int) {
	acts := []func(){
		func() {
			s.lost(s.gw, events.CmdContinuationSubmit, events.TypeContinuationQueued, events.Submit{To: "k", IdempotencyKey: "m", Body: events.Body{Text: "m"}})
		},
		s.learn, s.getOffer, s.acceptLost, s.learnTurn, s.tellSteer, s.takeSteer, s.endLost,
	}
	for _, act := range acts[:step+1] {
		act()
	}
}

func (s *scene) learn() {
	var r events.Receipt
	s.again(&r)
	s.message = r.ID
}

func (s *scene) getOffer() {
	s.attach()
	s.offer = s.nextOffer()
}

func (s *scene) nextOffer() events.OfferID {
	s.t.Helper()
	var o events.Offer
	for o.Offer == "" || o.Offer == s.offer {
		if err := json.Unmarshal(receive(s.t, "an offer", s.told).Data, &o); err != nil {
			s.t.Fatal(err)
		}
	}
	return o.Offer
}

func (s *scene) acceptLost() {
	s.turn = events.TurnID(events.NewID())
	s.lost(s.host, events.CmdTurnAccept, events.TypeTurnStarted, events.Accept{Session: s.session, Fence: s.fence, Offer: s.offer, Turn: s.turn})
}

func (s *scene) learnTurn() {
	var a events.Accepted
	s.again(&a)
	if a.Turn != s.turn {
		s.t.Errorf("a repeated accept was answered with turn %s, want %s", a.Turn, s.turn)
	}
}

func (s *scene) tellSteer() {
	s.steer = s.send(s.gw, events.Submit{To: "k", Mode: events.ModeSteer, Body: events.Body{Text: "s"}}).ID
	s.offer = s.nextOffer()
}

func (s *scene) takeSteer() {
	if _, err := s.host.Accept(within(s.t, 10*time.Second), events.Accept{Session: s.session, Fence: s.fence, Offer: s.offer, Turn: s.turn}); err != nil {
		s.t.Fatalf("take the steer: %v", err)
	}
}

func (s *scene) endLost() {
	s.lost(s.host, events.CmdTurnEnd, events.TypeTurnEnded, events.End{Session: s.session, Fence: s.fence, Turn: s.turn, Outcome: events.OutcomeCompleted})
}

// finish lets what remains be done by a host of the library.
func (s *scene) finish() {
	s.t.Helper()
	s.serve(s.dial(s.hostCreds), client.HostConfig{Handle: echo, Capabilities: []events.Capability{events.CapSteer}})
}

// audit checks the record: every item is accepted at most once and every turn ends once.
func (s *scene) audit() {
	s.t.Helper()
	items, turns := map[events.ReceiptID]int{}, map[events.TurnID]int{}
	page, err := s.gw.Page(within(s.t, 10*time.Second), s.session.Scope(), 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range page.Records {
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
			s.t.Errorf("item %s was accepted %d times", id, n)
		}
	}
	for id, n := range turns {
		if n != 1 {
			s.t.Errorf("turn %s ended %d times", id, n)
		}
	}
}

// outcome waits until an item is settled.
func (s *scene) outcome(id events.ReceiptID) events.Outcome {
	s.t.Helper()
	return s.reaches(s.gw, id, events.StateSettled).Outcome
}

func eachStep(t *testing.T, f func(t *testing.T, step int)) {
	t.Helper()
	for step, name := range stepNames {
		t.Run("when it is "+name, func(t *testing.T) {
			t.Parallel()
			f(t, step)
		})
	}
}

func TestABusKilledAtEachStepLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	eachStep(t, func(t *testing.T, step int) {
		t.Helper()
		s := newScene(t, events.CapIdempotentOffer)
		s.to(step)
		s.restart()
		for at := step; at < ended; at++ {
			switch at {
			case submitted:
				s.learn()
			case waiting:
				s.getOffer()
			case offered:
				s.acceptLost()
			case accepted:
				s.learnTurn()
			case running:
				s.tellSteer()
			case steerTold:
				s.takeSteer()
			case steerTaken:
				s.endLost()
			}
		}
		var e events.Ended
		s.again(&e)
		if e.Turn != s.turn || e.Outcome != events.OutcomeCompleted || e.Late {
			t.Errorf("the repeated end was answered %+v", e)
		}
		for _, id := range []events.ReceiptID{s.message, s.steer} {
			if r := s.reaches(s.gw, id, events.StateSettled); r.Turn != s.turn || r.Outcome != events.OutcomeCompleted {
				t.Errorf("receipt %+v", r)
			}
		}
		s.audit()
	})
}

func TestAHostKilledAtEachStepLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string][]events.Capability{
		"one that knows its offers": {events.CapIdempotentOffer}, "one that does not": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachStep(t, func(t *testing.T, step int) {
				t.Helper()
				s := newScene(t, caps...)
				s.lease = 2 * time.Second
				s.to(step)
				if step == submitted {
					s.learn()
				}
				if err := s.host.Close(); err != nil {
					t.Fatal(err)
				}
				s.finish()
				want := events.OutcomeCompleted
				if step >= accepted && step < ended {
					want = events.OutcomeLost // it ran, and nobody knows how far
				}
				if step == offered && len(caps) == 0 { // nobody knows whether it ran
					s.reaches(s.gw, s.message, events.StateUnresolved)
					if _, err := s.gw.Requeue(within(t, 10*time.Second), s.message); err != nil {
						t.Fatalf("requeue: %v", err)
					}
				}
				if got := s.outcome(s.message); got != want {
					t.Errorf("the message was %s, want %s", got, want)
				}
				if step == steerTold || step == ended {
					want = events.OutcomeCompleted // a steer that was not taken is the next turn
				}
				if step >= steerTold {
					if got := s.outcome(s.steer); got != want {
						t.Errorf("the steer was %s, want %s", got, want)
					}
				}
				if n := s.types(s.gw, s.session)["continuation.unresolved"]; n > 0 && !(step == offered && len(caps) == 0) {
					t.Errorf("%d unresolved although it can be known", n)
				}
				s.audit()
			})
		})
	}
}

func TestASenderKilledAtEachStepLearnsWhatBecameOfItsMessage(t *testing.T) {
	t.Parallel()
	eachStep(t, func(t *testing.T, step int) {
		t.Helper()
		s := newScene(t, events.CapIdempotentOffer)
		s.to(step)
		if err := s.gw.Close(); err != nil {
			t.Fatal(err)
		}
		s.gw = s.dial(s.gwCreds)
		r := s.send(s.gw, events.Submit{To: "k", IdempotencyKey: "m", Body: events.Body{Text: "m"}})
		if s.message != "" && r.ID != s.message {
			t.Errorf("the same key gave receipt %s, want %s", r.ID, s.message)
		}
		fates := []events.Fate{
			submitted: events.FateNeverStarted, waiting: events.FateNeverStarted, offered: events.FateNeverStarted,
			accepted: events.FateRunning, running: events.FateRunning, steerTold: events.FateRunning, steerTaken: events.FateRunning,
			ended: events.FateEnded,
		}
		if got := r.Fate(); got != fates[step] {
			t.Errorf("it was told %s, want %s", got, fates[step])
		}
		if v, err := s.gw.Turn(within(t, 10*time.Second), s.turn); slices.Contains(fates[accepted:ended], r.Fate()) && (err != nil || v.State != events.TurnRunning) {
			t.Errorf("the turn is %+v, %v", v, err)
		}
		if types := s.types(s.gw, s.session); types["continuation.queued"] > 2 || types["turn.started"] > 1 {
			t.Errorf("the record has %v", types)
		}
	})
}
