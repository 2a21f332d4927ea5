package authority

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"keryx/events"
)

// auditRate bounds audit records and dead letters of one principal, so that a
// hostile or broken one cannot fill the log: one a second, bursts of 20.
const (
	auditRate  = 1
	auditBurst = 20
)

// limits holds a token bucket per principal for commands and one for its refusals.
type limits struct {
	perSecond int
	mu        sync.Mutex
	commands  map[events.Principal]*rate.Limiter
	refusals  map[events.Principal]*rate.Limiter
}

func newLimits(perSecond int) *limits {
	return &limits{
		perSecond: perSecond,
		commands:  make(map[events.Principal]*rate.Limiter),
		refusals:  make(map[events.Principal]*rate.Limiter),
	}
}

func (l *limits) allow(p events.Principal) bool {
	return bucket(l, l.commands, p, rate.Limit(l.perSecond), l.perSecond).Allow()
}

func (l *limits) allowRecord(p events.Principal) bool {
	return bucket(l, l.refusals, p, auditRate, auditBurst).AllowN(time.Now(), 1)
}

func bucket(l *limits, m map[events.Principal]*rate.Limiter, p events.Principal, r rate.Limit, burst int) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := m[p]
	if !ok {
		b = rate.NewLimiter(r, burst)
		m[p] = b
	}
	return b
}
