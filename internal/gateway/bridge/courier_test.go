package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"keryx/events"
	"keryx/internal/gateway/platform"
	"keryx/internal/gateway/split"
)

// ether is a platform and an account's record, by a fake clock.
type ether struct {
	mu      sync.Mutex
	calls   []call
	facts   []events.RecordGateway
	refuse  map[string]int // chat to how many calls are answered 429
	failing bool
}

type call struct {
	at   time.Duration
	chat string
	id   string
}

func (e *ether) courier(ctx context.Context, start time.Time, l *ledger) *courier {
	return newCourier(ctx, Config{Name: "bot", SendTime: 30 * time.Second, Attempts: 12, Logger: slog.New(slog.DiscardHandler)}, l, outside{
		traits: func() platform.Traits {
			return platform.Traits{Limit: split.Limit{Max: 100, Unit: split.Runes}}
		},
		valid: func() bool { return true }, through: func() events.Sequence { return 0 },
		record: func(_ context.Context, r events.RecordGateway) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.facts = append(e.facts, r)
			return nil
		},
		send: func(_ context.Context, m platform.Outgoing) (string, error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.calls = append(e.calls, call{time.Since(start), m.Place.Chat, m.ID})
			if e.refuse[m.Place.Chat] > 0 {
				e.refuse[m.Place.Chat]--
				return "", &platform.LaterError{After: 30 * time.Second, Err: errors.New("429")}
			}
			if e.failing {
				return "", errors.New("500")
			}
			return "p-" + m.ID, nil
		},
	})
}

// ledger folds the record so far, as the next bridge does.
func (e *ether) ledger() *ledger {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := newLedger()
	for _, r := range e.facts {
		switch {
		case r.Sent != nil:
			l.foldSent(*r.Sent)
		case r.Delayed != nil:
			l.foldDelayed(*r.Delayed)
		case r.Dropped != nil:
			l.foldDropped(*r.Dropped)
		}
	}
	return l
}

func (e *ether) to(chat string) (out []call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.calls {
		if c.chat == chat {
			out = append(out, c)
		}
	}
	return out
}

func one(id, chat string) saying {
	return saying{id: id, place: events.Place{Chat: chat}, text: "reply " + id, at: events.Sequence(len(id))}
}

func TestCase_I8_APauseThatThePlatformAsksForHoldsUpItsChatAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, e := time.Now(), &ether{refuse: map[string]int{"1": 1}}
		ctx, kill := context.WithCancel(t.Context())
		c := e.courier(ctx, start, newLedger())
		c.say(one("a", "1"))
		c.say(one("aa", "1"))
		for i := range 5 {
			c.say(one(fmt.Sprint("other-", i), "2"))
		}
		time.Sleep(10 * time.Second) //nolint:forbidigo // the bubble's clock
		kill()                       // the bridge is restarted
		c.work.Wait()
		c = e.courier(t.Context(), start, e.ledger())
		c.say(one("a", "1")) // what is not done is asked for again
		c.say(one("aa", "1"))
		time.Sleep(time.Minute) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		c.work.Wait()
		first := e.to("1")
		if len(first) != 3 || first[0].at != 0 || first[1].at < 30*time.Second || first[1].at > 31*time.Second || first[1].id != "a.1" || first[2].id != "aa.1" {
			t.Errorf("chat 1 was called %v", first)
		}
		second := e.to("2")
		if len(second) != 5 || second[4].at != 0 {
			t.Errorf("chat 2 was called %v", second)
		}
		for i, c := range second {
			if c.id != fmt.Sprintf("other-%d.1", i) {
				t.Errorf("chat 2 was told %s as number %d", c.id, i)
			}
		}
		delayed := 0
		for _, r := range e.facts {
			if r.Delayed != nil {
				delayed++
			}
		}
		if delayed != 1 {
			t.Errorf("%d delays are on record, want 1", delayed)
		}
	})
}

func TestAPartThatFailsIsTriedLessAndLessOftenAndThenGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, e := time.Now(), &ether{failing: true}
		c := e.courier(t.Context(), start, newLedger())
		c.say(one("a", "1"))
		c.work.Wait()
		if calls := e.to("1"); len(calls) != 12 {
			t.Errorf("tried %d times, want 12", len(calls))
		}
		if last := e.facts[len(e.facts)-1]; last.Dropped == nil || last.Dropped.Send != "a" {
			t.Errorf("the last fact is %+v", last)
		}
		if took := time.Since(start); took < 10*time.Minute || took > time.Hour {
			t.Errorf("it took %s", took)
		}
		before := len(e.to("1"))
		c = e.courier(t.Context(), start, e.ledger())
		c.say(one("a", "1"))
		c.work.Wait()
		if len(e.to("1")) != before {
			t.Error("what was given up is tried again")
		}
	})
}

func TestPartsThatAreOnRecordAreNotSaidAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &ether{}
		long := saying{id: "turn", place: events.Place{Chat: "1"}, text: fmt.Sprintf("%0250d", 7), at: 9}
		l := newLedger()
		l.foldSent(events.GatewaySent{Account: "bot", Place: long.place, Send: "turn", Part: 1, Parts: 3, At: 9, Message: "p"})
		c := e.courier(t.Context(), time.Now(), l)
		c.say(long)
		c.work.Wait()
		calls := e.to("1")
		if len(calls) != 2 || calls[0].id != "turn.2" || calls[1].id != "turn.3" {
			t.Errorf("said %v", calls)
		}
	})
}

func TestAnEchoThatIsFasterThanItsAnswerIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, release := &ether{}, make(chan struct{})
		c := e.courier(t.Context(), time.Now(), newLedger())
		send := c.send
		c.send = func(ctx context.Context, m platform.Outgoing) (string, error) {
			<-release
			return send(ctx, m)
		}
		c.say(one("a", "1"))
		synctest.Wait()
		told := make(chan bool, 2)
		ask := func(message, text string) {
			own, err := c.echo(t.Context(), platform.Incoming{Place: events.Place{Chat: "1"}, Message: message, Text: text})
			told <- own && err == nil
		}
		go ask("p-a.1", "reply a")
		synctest.Wait()
		if len(told) > 0 {
			t.Error("it was told before it can be known")
		}
		close(release)
		if !<-told {
			t.Error("an echo was taken for a message")
		}
		c.work.Wait()
		if ask("other", "reply a"); <-told {
			t.Error("a message was taken for an echo")
		}
	})
}
