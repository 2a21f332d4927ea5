package sessionlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"keryx/events"
)

// State is how a log is at one moment.
type State struct {
	// Created is when the stream was made.
	Created time.Time
	// Last is the highest sequence that was ever given out.
	Last events.Sequence
	// Messages is how many messages are kept.
	Messages uint64
}

// State asks the server how the log is.
func (l *Log) State(ctx context.Context) (State, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return State{}, fmt.Errorf("read state of stream %s: %w", l.name, err)
	}
	return State{Created: info.Created, Last: events.Sequence(info.State.LastSeq), Messages: info.State.Msgs}, nil
}

// Count lets a mark know of every removal of messages, so that what is missing otherwise
// is seen. It must be called before the first removal.
func (l *Log) Count(h *HighWater) { l.marks = h }

// counted runs a removal of messages.
func (l *Log) counted(ctx context.Context, remove func() error) error {
	if l.marks == nil {
		return remove()
	}
	if err := l.marks.Purging(); err != nil {
		return err
	}
	err := remove()
	// One at a time: the state that is told last has to be the one that was read last.
	l.counting.Lock()
	defer l.counting.Unlock()
	s, serr := l.State(ctx)
	if serr != nil { // the mark goes on saying that messages are being removed
		return errors.Join(err, serr)
	}
	l.marks.Purged(s)
	return err
}
