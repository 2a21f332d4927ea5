package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

const (
	// questionsWaiting is how many questions may wait to be read; one that comes while so
	// many wait is not answered, and gets its default.
	questionsWaiting = 1024
	// judgedAtOnce is how many questions are judged at once.
	judgedAtOnce = 16
)

// JudgeConfig says who is asked before a tool runs. Judge is needed.
type JudgeConfig struct {
	// Judge is called for each question, several at once; ctx ends at the question's
	// deadline. An error gives no answer, so that the default is taken.
	Judge func(ctx context.Context, q events.PolicyQuestion) (events.Verdict, string, error)
	// LeaseTTL is how long the process may be silent and still counts as registered.
	// 0: the bus's default.
	LeaseTTL time.Duration
}

// ServeJudge registers the principal, a gateway or an operator, to be asked before tools
// run, and answers until ctx ends; it returns nil then. While the bus is away it stays
// registered for its lease's ttl and registers again once the bus is back. It returns an
// error when the bus refuses the registration.
func (c *Conn) ServeJudge(ctx context.Context, cfg JudgeConfig) error {
	p := c.Principal()
	questions := make(chan *nats.Msg, questionsWaiting)
	sub, err := c.nc.ChanSubscribe(events.PolicySubject(p.Profile, p.Name, c.Instance()), questions)
	if err != nil {
		return fmt.Errorf("serve as judge: %w", c.sendError(err))
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	j := &judge{conn: c, cfg: cfg, keeper: NewKeeper(KeeperConfig{Caller: c, Instance: c.Instance(), Logger: c.logger})}
	ctx, cancel := context.WithCancelCause(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel(nil)
	work.Go(func() { j.keeper.Run(ctx) })
	work.Go(func() { j.register(ctx, cancel) })
	for range judgedAtOnce {
		work.Go(func() { j.answer(ctx, questions) })
	}
	<-ctx.Done()
	if failed, ok := errors.AsType[*judgeError](context.Cause(ctx)); ok {
		return fmt.Errorf("serve as judge: %w", failed.err)
	}
	return nil
}

// judgeError tells why a judge ended from why its caller ended it.
type judgeError struct{ err error }

func (e *judgeError) Error() string { return e.err.Error() }

type judge struct {
	conn   *Conn
	cfg    JudgeConfig
	keeper *Keeper
}

// register holds the lease that stands for the registration, and takes it anew whenever
// it is lost.
func (j *judge) register(ctx context.Context, fail context.CancelCauseFunc) {
	key := events.LeaseKey{Profile: j.conn.Principal().Profile, Kind: events.LeasePolicy, Name: string(j.conn.Principal().Name)}
	for pause := backoffMin; ; pause = min(2*pause, backoffMax) {
		held, err := j.keeper.Acquire(ctx, key, LeaseTerms{TTL: j.cfg.LeaseTTL})
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause = backoffMin
			if !j.hold(ctx, held) {
				return
			}
		case errors.Is(err, events.ErrOf(events.CodeForbidden)), errors.Is(err, events.ErrOf(events.CodeLeaseRevoked)), errors.Is(err, nats.ErrConnectionClosed):
			fail(&judgeError{err})
			return
		default:
			j.conn.logger.Warn("not registered to be asked yet", "error", err)
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// hold waits for the end of the lease; false when it was given back because ctx ended.
func (j *judge) hold(ctx context.Context, held *Held) bool {
	select {
	case <-held.Lost():
		return true
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := held.Release(bound); err != nil {
		j.conn.logger.Warn("give a registration back", "error", err)
	}
	return false
}

func (j *judge) answer(ctx context.Context, questions <-chan *nats.Msg) {
	for {
		select {
		case m := <-questions:
			var q events.PolicyQuestion
			if err := json.Unmarshal(m.Data, &q); err != nil {
				j.conn.logger.Error("a question cannot be read", "error", err)
				continue
			}
			j.judge(withTraceOf(ctx, m), q)
		case <-ctx.Done():
			return
		}
	}
}

func (j *judge) judge(ctx context.Context, q events.PolicyQuestion) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(q.DeadlineMS)*time.Millisecond)
	defer cancel()
	verdict, reason, err := j.cfg.Judge(ctx, q)
	if err == nil {
		err = j.conn.VotePolicy(ctx, events.VotePolicy{Session: q.Session, Question: q.Question, Verdict: verdict, Reason: reason})
	}
	if err != nil && !errors.Is(err, events.ErrOf(events.CodeAlreadyAnswered)) {
		j.conn.logger.Warn("a question got no answer", "question", q.Question, "tool", q.Tool, "error", err)
	}
}
