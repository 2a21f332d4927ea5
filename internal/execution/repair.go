package execution

import (
	"context"
	"time"

	"keryx/events"
)

const (
	// stillLooks are how often in a row the bus may have no more than before until what
	// it does not have counts as lost: it stores behind our back, and what is sent twice
	// pushes out other chunks.
	stillLooks = 4
	// futileRounds are how often in a row sending again may gain nothing before the rest
	// is given up, e.g. because the store is full.
	futileRounds = 4
	firstPause   = 2 * time.Millisecond
	lastPause    = 200 * time.Millisecond
	// resendBurst is how many chunks are sent again before the connection is flushed.
	resendBurst = 64
)

// settle makes sure that the bus has what it can keep, after all was sent, and returns
// the chunks that it has.
func (s *sender) settle(ctx context.Context) ([]chunk, error) {
	want := s.spool.window()
	if len(want) == 0 {
		return nil, nil
	}
	fewest, pause := len(want)+1, firstPause
	for futile := 0; ; futile++ {
		missing, err := s.lost(ctx, want, &pause)
		if err != nil {
			return nil, err
		}
		if len(missing) < fewest {
			fewest, futile = len(missing), 0
		}
		if len(missing) == 0 || futile >= futileRounds {
			return without(want, missing), nil
		}
		if err := s.resend(ctx, missing); err != nil {
			return nil, err
		}
	}
}

// repair sends again, once, what a lost connection swallowed, so that those who follow
// need not wait for the end.
func (s *sender) repair(ctx context.Context) error {
	want, pause := s.spool.window(), firstPause
	if len(want) == 0 {
		return nil
	}
	missing, err := s.lost(ctx, want, &pause)
	if err != nil {
		return err
	}
	return s.resend(ctx, missing)
}

// lost returns those of the wanted chunks that the bus does not have and no longer
// seems to be about to store. The pause between two looks grows over the calls.
func (s *sender) lost(ctx context.Context, want []chunk, pause *time.Duration) ([]chunk, error) {
	fewest := len(want) + 1
	for still := 0; ; still++ {
		missing, err := s.missing(ctx, want)
		if err != nil {
			return nil, err
		}
		if len(missing) < fewest {
			fewest, still = len(missing), 0
		}
		if len(missing) == 0 || still >= stillLooks {
			return missing, nil
		}
		if err := sleep(ctx, *pause); err != nil {
			return nil, err
		}
		*pause = min(2**pause, lastPause)
	}
}

// missing returns those of the wanted chunks that the bus does not have. It asks until
// it is answered.
func (s *sender) missing(ctx context.Context, want []chunk) ([]chunk, error) {
	if now := s.bus.NATS().Stats().Reconnects; now != s.reconnects {
		s.reconnects, s.suspect = now, true
	}
	var page events.OutputPage
	q := events.Output{Session: s.session, Exec: s.exec, TipOnly: true, Audit: s.suspect}
	if err := insist(ctx, s.bus, s.logger, events.CmdExecOutput, q, &page); err != nil {
		return nil, err
	}
	var out []chunk
	for _, c := range want {
		if c.number > page.Stored || within(c.number, page.Missing) {
			out = append(out, c)
		}
	}
	return out, nil
}

func within(n uint64, ranges []events.ChunkRange) bool {
	for _, r := range ranges {
		if n >= r.From && n <= r.To {
			return true
		}
	}
	return false
}

// without returns the chunks of all that are not in less; both are in order.
func without(all, less []chunk) []chunk {
	out := make([]chunk, 0, len(all)-len(less))
	for _, c := range all {
		if len(less) > 0 && less[0].number == c.number {
			less = less[1:]
			continue
		}
		out = append(out, c)
	}
	return out
}

// resend sends chunks again, as far as the spool still holds them.
func (s *sender) resend(ctx context.Context, missing []chunk) error {
	sent := 0
	s.suspect = s.suspect || len(missing) > 0 // they will stand out of order
	for _, c := range missing {
		data, ok := s.spool.read(c, s.buf)
		if !ok {
			continue
		}
		s.publish(c, data)
		if sent++; sent%resendBurst == 0 {
			s.catchUp(ctx)
		}
	}
	if sent > 0 {
		s.logger.Debug("output sent again", "exec", s.exec, "chunks", sent)
	}
	return context.Cause(ctx)
}

// catchUp waits until the server has read what was sent.
func (s *sender) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keepUp)
	defer cancel()
	if err := s.bus.NATS().FlushWithContext(ctx); err != nil {
		s.logger.Debug("flush output", "exec", s.exec, "error", err)
	}
}
