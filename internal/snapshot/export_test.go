package snapshot

import (
	"context"
	"errors"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// ErrCut is the error of a write that was cut off.
var ErrCut = errors.New("cut off")

// CutAfter lets so many parts be written, and no more; a negative number is no bound.
func (s *Store) CutAfter(n int) {
	s.append = func(ctx context.Context, m sessionlog.Message) (events.Sequence, error) {
		if n == 0 {
			return 0, ErrCut
		}
		n--
		return s.log.Append(ctx, m)
	}
}
