package node

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"keryx/events"
	"keryx/internal/sessionlog"
	"keryx/internal/storefile"
)

// truths are the streams that are not projections: damage to them is refused.
func truths() []string {
	return []string{events.StreamLog, events.StreamImport, "KV_" + events.BucketLeases}
}

// loss is what the operator has accepted at this start.
type loss struct {
	highWater, last events.Sequence
	missing         uint64
	damaged         []string
}

// inspect looks at the store before the server opens it, which would heal it silently.
// It runs under the directory's lock.
func (n *Node) inspect(ctx context.Context) error {
	if err := storefile.CheckFormat(n.cfg.Dir); err != nil {
		return err
	}
	reports := make(map[string]storefile.Report)
	var damages []storefile.Damage
	for _, stream := range truths() {
		r, err := storefile.Scan(ctx, n.cfg.Dir, stream)
		if err != nil {
			return err
		}
		if r.Torn != nil {
			n.cfg.Logger.Warn("a record was being written when the bus was killed; it was never answered and is cut off", "where", r.Torn.String())
		}
		reports[stream] = r
		damages = append(damages, r.Damages...)
	}
	n.scanned = reports[events.StreamLog]
	if err := n.decide(ctx, reports, damages); err != nil {
		return err
	}
	return n.repair(ctx)
}

// decide refuses a store that has lost something, or takes it as it is when the operator
// has said so.
func (n *Node) decide(ctx context.Context, reports map[string]storefile.Report, damages []storefile.Damage) error {
	m, err := sessionlog.ReadMark(n.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	last := n.scanned.Last
	switch {
	case len(damages) == 0 && last >= m.Last:
		return nil
	case !n.cfg.AcceptLoss && len(damages) > 0:
		return &storefile.DamagedError{Dir: n.cfg.Dir, Damages: damages}
	case !n.cfg.AcceptLoss:
		return &sessionlog.RegressedError{Dir: n.cfg.Dir, HighWater: m.Last, Last: last}
	}
	n.loss = &loss{highWater: max(m.Last, last), last: last}
	return n.cut(ctx, reports)
}

func (n *Node) cut(ctx context.Context, reports map[string]storefile.Report) error {
	const most = 20
	for _, stream := range truths() {
		kept, err := storefile.Cut(n.cfg.Dir, reports[stream], time.Now())
		if err != nil {
			return err
		}
		for _, d := range reports[stream].Damages {
			n.cfg.Logger.Warn("damage taken out of the store", "where", d.String(), "kept", kept)
			if len(n.loss.damaged) < most {
				n.loss.damaged = append(n.loss.damaged, d.String())
			}
		}
	}
	r, err := storefile.Scan(ctx, n.cfg.Dir, events.StreamLog)
	n.scanned = r
	return err
}

// repair makes whole what is no truth: dead letters lose what is damaged, and snapshots,
// which are made again from the log, go altogether.
func (n *Node) repair(ctx context.Context) error {
	for _, stream := range []string{events.StreamDead, events.StreamSnap} {
		r, err := storefile.Scan(ctx, n.cfg.Dir, stream)
		if err != nil {
			return err
		}
		if len(r.Damages) == 0 {
			continue
		}
		var kept []string
		if stream == events.StreamDead {
			kept, err = storefile.Cut(n.cfg.Dir, r, time.Now())
		} else {
			kept = []string{""}
			kept[0], err = storefile.SetAside(n.cfg.Dir, stream, time.Now())
		}
		if err != nil {
			return err
		}
		n.cfg.Logger.Warn("a damaged projection was repaired", "stream", stream, "where", r.Damages[0].String(), "places", len(r.Damages), "kept", kept)
	}
	return nil
}
