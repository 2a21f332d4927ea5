package node

import (
	"context"
	"errors"
	"fmt"

	"keryx/events"
	"keryx/internal/sessionlog"
	"keryx/internal/storefile"
)

// checkHighWater compares the store with what it is known to have held, and returns
// its generation.
func (n *Node) checkHighWater(ctx context.Context, log *sessionlog.Log) (uint64, error) {
	state, err := log.State(ctx)
	if err != nil {
		return 0, err
	}
	if err := n.compare(state); err != nil {
		return 0, err
	}
	n.marks, err = sessionlog.OpenHighWater(n.cfg.Dir, state)
	var regressed *sessionlog.RegressedError
	if errors.As(err, &regressed) && n.cfg.AcceptLoss && n.loss == nil {
		n.loss = &loss{highWater: regressed.HighWater, last: state.Last, missing: regressed.Missing}
	}
	if n.loss != nil && (err == nil || regressed != nil) {
		err = n.acceptLoss(state, regressed)
	}
	if err != nil {
		return 0, err
	}
	log.Count(n.marks)
	return n.marks.Generation(), nil
}

func (n *Node) acceptLoss(state sessionlog.State, regressed *sessionlog.RegressedError) error {
	if regressed != nil {
		n.loss.missing = regressed.Missing
	}
	n.cfg.Logger.Warn("serving a store that has lost messages", "high_water", n.loss.highWater, "last", n.loss.last,
		"missing", n.loss.missing, "damaged", n.loss.damaged)
	var err error
	if n.marks, err = sessionlog.AcceptLoss(n.cfg.Dir, state); err != nil {
		return err
	}
	n.lost = &events.StoreRegressed{
		HighWater: n.loss.highWater, Last: n.loss.last, Generation: n.marks.Generation(),
		Lost: n.loss.missing, Damaged: n.loss.damaged,
	}
	return nil
}

// compare holds what the server makes of the store against what its files were seen to
// hold before it opened them.
func (n *Node) compare(state sessionlog.State) error {
	if s := n.scanned; s.Exists && (state.Last < s.Last || state.Messages > s.Messages) {
		return &storefile.MismatchError{
			Dir: n.cfg.Dir, Stream: s.Stream, Files: s.Messages, FilesLast: s.Last, Server: state.Messages, ServerLast: state.Last,
		}
	}
	if s := n.scanned; s.Exists && !s.Index {
		n.cfg.Logger.Info("the index of the log was missing and is made again", "messages", fmt.Sprint(state.Messages))
	}
	return nil
}
