package authority

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
)

// Bounds of one command: how often a lost race is decided again, and how many events
// in a row one command may lead to. Both are far above what happens.
const (
	maxRaces = 8
	maxSteps = 64
)

// lane is one session: its folded state and the commands that wait for it.
type lane struct {
	serial
	profile events.Profile
	id      events.SessionID

	slot int // its place in the index, once it is there

	// stateMu guards what follows for readers; only the lane's own goroutine changes it.
	stateMu sync.RWMutex
	state   *lifecycle.State // nil while it is not in memory
	brief   lifecycle.Brief  // of a state that is not in memory
	stale   bool             // the log has more of a state not in memory than its brief

	// By its term's clock, in nanoseconds: when it last worked, and when to look again
	// whether it can leave memory. remembers says that history is set.
	used, restAt atomic.Int64
	remembers    atomic.Bool
	snapped      atomic.Bool   // it has a snapshot of its own
	cut          atomic.Uint64 // the sequence before which its log was cut, in this term

	// The rest belongs to the lane's goroutine alone.
	last        events.EventID   // of the state
	since       int              // events since a snapshot, or the beginning
	history     *lifecycle.State // of the whole log, while it is asked for; nil else
	parked      []*parked
	interrupted events.TurnID // the turn that its host was told to abort
	deadline    time.Time     // for the host to end it
	offerSent   time.Time     // when the open offer was last told
	reminders   map[reminderKey]*reminder
	waiting     map[events.CommandID][]string // reply subjects of commands answered by a later event
	trace       trace                         // of the command in hand; orders that follow from it carry it
}

// errMoved means that the request belongs to another lane by now.
var errMoved = errors.New("the names belong to another session by now")

// parked is a request that waits for a running turn to end.
type parked struct {
	req  *request
	more []string // reply subjects of repeats
}

func newLane(t *term, p events.Profile, id events.SessionID) *lane {
	l := &lane{profile: p, id: id, state: new(lifecycle.State)}
	l.serial = serial{t: t, settle: l.settle}
	return l
}

// handle decides a request until it is answered or parked.
func (l *lane) handle(ctx context.Context, req *request) {
	l.trace = traceOf(req.event)
	defer func() { l.trace = trace{} }()
	if l.joinParked(req) {
		return
	}
	answer, parkedFor, err := l.decide(ctx, req)
	if d, ok := req.data.(events.Forget); ok && err == nil && parkedFor == nil {
		err = l.forgetSession(ctx, req, d)
	}
	switch {
	case errors.Is(err, errMoved):
		l.t.toLane(req)
	case err != nil:
		l.t.fail(req, err)
	case parkedFor != nil:
		l.park(req, parkedFor)
	case answer == nil:
		l.await(req)
	default:
		l.t.send(req.reply, events.StatusOK, "", answer)
	}
}

// decide runs a request's decisions and appends what they ask for.
func (l *lane) decide(ctx context.Context, req *request) (events.Raw, *lifecycle.Interruption, error) {
	races, confirmed := 0, false
	if err := l.catchUp(ctx); err != nil {
		return nil, nil, err
	}
	for range maxSteps {
		cmd, err := l.command(req)
		if err != nil {
			return nil, nil, err
		}
		in, err := l.stateFor(ctx, cmd.Data)
		if err != nil {
			return nil, nil, err
		}
		d, err := lifecycle.Decide(in, cmd)
		if err != nil && !confirmed {
			confirmed = true
			if l.grown(ctx) {
				continue
			}
		}
		if err != nil || d.Interrupt != nil {
			return nil, d.Interrupt, err
		}
		if len(d.Drafts) == 0 {
			l.perform(d.Effects)
			return d.Answer, nil, nil // no answer: it comes with a later event
		}
		err = l.commit(ctx, step{decision: d, by: req.caller, cause: req.id, actingFor: req.actingFor, trace: traceOf(req.event), hits: cmd.Hits, now: cmd.Now})
		if lost, again := l.lostRace(ctx, req, err, &races); lost {
			if again != nil {
				return nil, nil, again
			}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if d.Again {
			continue
		}
		if a, ok := l.state.Answer(req.id); ok {
			return a, nil, nil
		}
		if d.Wait {
			return nil, nil, nil
		}
		return nil, nil, events.Errorf(events.CodeInternal, "%s left no answer", req.entry.Type.Short())
	}
	return nil, nil, events.Errorf(events.CodeConflict, "%s did not come to an end in %d steps", req.entry.Type.Short(), maxSteps)
}

// grown reads the log anew and reports whether another authority has appended: a
// refusal appends nothing, so only this shows that it rests on an old state.
func (l *lane) grown(ctx context.Context) bool {
	before := l.state.LastSequence
	if err := l.refresh(ctx); err != nil {
		l.t.logger.Warn("confirm a refusal", "session", l.id, "error", err)
		return false
	}
	return l.state.LastSequence != before
}

// lostRace reports whether err means that the state decided on was old or unknown. It
// has read the log anew then; the second result is set when trying on is pointless.
func (l *lane) lostRace(ctx context.Context, req *request, err error, races *int) (bool, error) {
	var stale *sessionlog.SequenceError
	if !errors.As(err, &stale) && !errors.Is(err, sessionlog.ErrUnknownResult) {
		return false, nil
	}
	*races++
	if *races > maxRaces {
		return true, events.Errorf(events.CodeConflict, "others changed session %s at each of %d tries", l.id, maxRaces)
	}
	if err := l.refresh(ctx); err != nil {
		return true, err
	}
	return true, l.t.refreshNames(ctx, l.profile, req.writes())
}

// command builds what Decide needs of a request.
func (l *lane) command(req *request) (lifecycle.Command, error) {
	cmd := lifecycle.Command{
		ID: req.id, Caller: req.caller, Type: req.entry.Type, Data: req.data,
		Now: time.Now(), Sent: req.sent(), Session: l.id,
		DefaultHosts: l.t.cfg.Registry.DefaultHosts(l.profile),
		Generation:   l.t.cfg.Generation, Mint: events.NewID,
	}
	if names := req.writes(); names != nil {
		cmd.Hits = l.t.hits(l.profile, names)
		for _, h := range cmd.Hits {
			if h.Record != nil && h.Record.Session != l.id {
				if !l.state.Exists() { // two registers of one new name met, the other was first
					return cmd, errMoved
				}
				return cmd, events.Errorf(events.CodeIdentityConflict, "%s %q is session %s", h.Name.Kind, h.Name.Value, h.Record.Session)
			}
		}
	}
	if start, ok := req.data.(events.StartExec); ok {
		if err := l.checkStart(start); err != nil {
			if _, answered := l.state.Answer(req.id); !answered {
				return cmd, err
			}
		}
	}
	cmd.Via, cmd.By = l.via(req), l.t.roleOf(req)
	return cmd, l.outside(&cmd)
}

// checkStart refuses a start whose target moved, or is that of a package which is not in
// effect for this session.
func (l *lane) checkStart(start events.StartExec) error {
	if err := l.t.checkSelection(l.profile, l.id, start.Selection); err != nil {
		return err
	}
	return l.t.checkInEffect(l.profile, start.Selection.Target, l.state.Since())
}

// via is the name through which a request found this session, as the session has it.
func (l *lane) via(req *request) *events.OwnedName {
	if req.session() != "" || req.receipt() != "" {
		return nil
	}
	if _, isRegister := req.data.(events.Register); isRegister {
		return nil
	}
	_, name, err := l.t.resolve(l.profile, req.target())
	if err != nil || name == nil {
		return nil
	}
	if own := l.state.NameOf(*name); own != nil {
		return own
	}
	e, ok := l.t.sessions.name(l.profile, *name)
	if !ok {
		return nil
	}
	// A name the state no longer keeps is one of an epoch that has ended.
	return &events.OwnedName{Name: *name, Owner: e.record.Owner, Epoch: e.record.Epoch}
}

// joinParked adds a repeat of a parked request to it.
func (l *lane) joinParked(req *request) bool {
	for _, p := range l.parked {
		if p.req.id == req.id {
			if p.req.reply != req.reply && !slices.Contains(p.more, req.reply) {
				p.more = append(p.more, req.reply)
			}
			return true
		}
	}
	return false
}

// park keeps a request until the running turn has ended, and tells the host.
func (l *lane) park(req *request, i *lifecycle.Interruption) {
	req.data = lifecycle.Command{Data: req.data}.Pinned(*i).Data
	l.parked = append(l.parked, &parked{req: req})
	l.setDeadline(*i)
	l.sendInterrupt(*i)
}

// unpark decides the parked requests again, in their order.
func (l *lane) unpark(ctx context.Context) {
	waiting := l.parked
	l.parked = nil
	for _, p := range waiting {
		answer, parkedFor, err := l.decide(ctx, p.req)
		if d, ok := p.req.data.(events.Forget); ok && err == nil && parkedFor == nil {
			err = l.forgetSession(ctx, p.req, d)
		}
		if parkedFor != nil {
			l.park(p.req, parkedFor)
			l.parked[len(l.parked)-1].more = p.more
			continue
		}
		for _, reply := range append([]string{p.req.reply}, p.more...) {
			if err != nil {
				l.t.refuse(reply, asError(l.t.unanswered(ctx, err), events.CodeInternal))
				continue
			}
			l.t.send(reply, events.StatusOK, "", answer)
		}
	}
}
