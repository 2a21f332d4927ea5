package node

import (
	"context"
	"errors"
	"fmt"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// checkHighWater compares the store with what it is known to have held, and returns
// its generation.
func (n *Node) checkHighWater(ctx context.Context, log *sessionlog.Log) (uint64, error) {
	last, err := log.LastSequence(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the log's last sequence: %w", err)
	}
	created, err := log.Created(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the log's creation time: %w", err)
	}
	n.marks, err = sessionlog.OpenHighWater(n.cfg.Dir, created, last)
	var regressed *sessionlog.RegressedError
	if errors.As(err, &regressed) && n.cfg.AcceptLoss {
		n.cfg.Logger.Warn("serving a store that has lost messages", "high_water", regressed.HighWater, "last", regressed.Last)
		n.marks, err = sessionlog.AcceptLoss(n.cfg.Dir, created, last)
		if err == nil {
			n.lost = &events.StoreRegressed{HighWater: regressed.HighWater, Last: last, Generation: n.marks.Generation()}
		}
	}
	if err != nil {
		return 0, err
	}
	return n.marks.Generation(), nil
}
