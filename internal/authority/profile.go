package authority

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/sessionlog"
	"keryx/internal/targets"
	"keryx/internal/tokens"
)

// profileLane is the scope _profile of one profile: targets, tokens and audit.
type profileLane struct {
	serial
	profile events.Profile

	stateMu  sync.RWMutex
	targets  targets.State
	tokens   tokens.State
	imports  map[events.SessionID]events.SessionImported
	sequence events.Sequence
	ordinal  events.Ordinal
	lastTime time.Time
	answers  map[events.CommandID]events.Raw
	recent   []events.CommandID // keys of answers, oldest first

	forgotten []events.SessionID // sessions that are removed, or are to be
}

// keptAnswers is how many commands of a profile are answered again (design section 5).
const keptAnswers = 4096

type profileIndex struct {
	t  *term
	mu sync.Mutex
	m  map[events.Profile]*profileLane
}

func newProfileIndex(t *term) *profileIndex {
	return &profileIndex{t: t, m: make(map[events.Profile]*profileLane)}
}

func (x *profileIndex) get(p events.Profile) *profileLane {
	x.mu.Lock()
	defer x.mu.Unlock()
	l, ok := x.m[p]
	if !ok {
		l = &profileLane{profile: p, answers: make(map[events.CommandID]events.Raw)}
		l.serial = serial{t: x.t, settle: func(context.Context) {}}
		x.m[p] = l
	}
	return l
}

// all returns the profiles in memory.
func (x *profileIndex) all() map[events.Profile]*profileLane {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.m)
}

// knownProfiles returns the profiles that the log has anything of.
func (t *term) knownProfiles() []events.Profile {
	known := make(map[events.Profile]bool)
	for l := range t.sessions.all("") {
		known[l.profile] = true
	}
	t.profiles.mu.Lock()
	defer t.profiles.mu.Unlock()
	for p := range t.profiles.m {
		known[p] = true
	}
	return slices.Sorted(maps.Keys(known))
}

func (l *profileLane) fold(rec events.Record) {
	defer l.t.frontier.reached(rec.Sequence)
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	l.sequence, l.ordinal = rec.Sequence, rec.Ordinal
	if rec.Time.After(l.lastTime) {
		l.lastTime = rec.Time
	}
	l.foldImport(rec)
	if err := errors.Join(l.targets.Fold(rec), l.tokens.Fold(rec)); err != nil {
		l.t.logger.Error("event cannot be folded", "profile", l.profile, "ordinal", rec.Ordinal, "error", err)
	}
	if d, err := events.DataOf[events.SessionForgotten](rec); err == nil && rec.Type == events.TypeSessionForgotten {
		l.forgotten = append(l.forgotten, d.Session)
	}
	if rec.Causation == "" {
		return
	}
	if a, ok := l.answerOf(rec); ok {
		l.remember(rec.Causation, a)
	}
}

// answerOf computes what the command behind an event was answered.
func (l *profileLane) answerOf(rec events.Record) (events.Raw, bool) {
	var answer any
	switch rec.Type {
	case events.TypeTargetRegistered:
		d, err := events.DataOf[events.TargetRegistered](rec)
		if err != nil {
			return nil, false
		}
		sel, err := l.targets.Select(d.Spec.Name)
		if err != nil {
			return nil, false
		}
		answer = sel
	case events.TypeTargetControlChanged:
		d, err := events.DataOf[events.TargetControlChanged](rec)
		if err != nil {
			return nil, false
		}
		sel, err := l.targets.Select(d.Name)
		if err != nil {
			return nil, false
		}
		answer = sel
	case events.TypeTargetWithdrawn, events.TypeTargetReported, events.TypeTargetAttached, events.TypeTargetDetached:
		answer = events.Done{Sequence: rec.Sequence}
	case events.TypeSessionImported:
		d, err := events.DataOf[events.SessionImported](rec)
		if err != nil {
			return nil, false
		}
		answer = d
	case events.TypeTokenAdded:
		d, err := events.DataOf[events.TokenAdded](rec)
		if err != nil {
			return nil, false
		}
		answer = l.tokenView(d.Name, rec.Time)
	case events.TypeTokenRevoked:
		d, err := events.DataOf[events.TokenRevoked](rec)
		if err != nil {
			return nil, false
		}
		answer = l.tokenView(d.Name, rec.Time)
	case events.TypeLeaseRevoked:
		d, err := events.DataOf[events.LeaseRevocation](rec)
		if err != nil {
			return nil, false
		}
		answer = revoked(d)
	default:
		return nil, false
	}
	body, err := events.MarshalData(answer)
	return body, err == nil
}

// tokenView is what a token was when its event was taken in, under which this runs.
func (l *profileLane) tokenView(name events.TokenName, at time.Time) events.TokenView {
	tok, _ := l.tokens.Get(name)
	return tok.View(at)
}

func (l *profileLane) remember(id events.CommandID, a events.Raw) {
	id = events.CommandID(strings.Clone(string(id))) // of a message's whole header, often
	l.answers[id] = a
	l.recent = append(l.recent, id)
	if len(l.recent) > keptAnswers {
		delete(l.answers, l.recent[0])
		l.recent = l.recent[1:]
	}
}

// appendFact appends a fact of the authority's own; one that cannot be kept is logged.
func (l *profileLane) appendFact(t events.Type, data any) {
	l.add(l.t.cfg.LaneQueue, func(ctx context.Context) {
		if err := l.append(ctx, origin{source: events.Source(l.profile, events.AuthorityName)}, t, data); err != nil {
			l.t.logger.Error("append a fact", "type", t, "profile", l.profile, "error", err)
		}
	})
}

// origin is what an event says of where it comes from.
type origin struct {
	source    string
	cause     events.CommandID
	actingFor events.TokenName
	trace     trace
}

func originOf(req *request) origin {
	return origin{source: req.caller.Source(), cause: req.id, actingFor: req.actingFor, trace: traceOf(req.event)}
}

// append appends one event to the scope, deciding its place anew after a lost race.
func (l *profileLane) append(ctx context.Context, from origin, t events.Type, data any) error {
	for range maxRaces {
		ev, err := newEvent(from.source, events.ScopeProfile, t, laterOf(time.Now(), l.lastTime), l.ordinal+1, data)
		if err != nil {
			return err
		}
		setAttributes(&ev, map[string]string{
			events.ExtCausation: string(from.cause), events.ExtActingFor: string(from.actingFor),
			events.ExtTraceParent: from.trace.parent, events.ExtTraceState: from.trace.state,
		})
		m, err := logMessage(l.profile, events.ScopeProfile, ev)
		if err != nil {
			return err
		}
		expect := l.sequence
		m.Expect = &expect
		sequences, err := l.t.write(ctx, []sessionlog.Message{m})
		var stale *sessionlog.SequenceError
		if errors.As(err, &stale) || errors.Is(err, sessionlog.ErrUnknownResult) {
			if done, err := l.refresh(ctx, from.cause); done || err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		rec, err := events.RecordOf(l.profile, events.ScopeProfile, sequences[0], ev)
		if err != nil {
			return fmt.Errorf("read back %s: %w", t, err)
		}
		l.fold(rec)
		return nil
	}
	return events.Errorf(events.CodeConflict, "others changed profile %s at each of %d tries", l.profile, maxRaces)
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// refresh folds what the log has beyond the state, and reports whether the command
// with this id is among it.
func (l *profileLane) refresh(ctx context.Context, cause events.CommandID) (bool, error) {
	from := l.sequence + 1
	for from != 0 {
		page, next, err := l.t.cfg.Log.Page(ctx, events.LogSubject(l.profile, events.ScopeProfile), from, pageLimit, pageBytes)
		if err != nil {
			return false, fmt.Errorf("read profile %s anew: %w", l.profile, err)
		}
		for _, m := range page {
			rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
			if err != nil {
				l.t.logger.Error("event cannot be decoded", "profile", l.profile, "sequence", m.Sequence, "error", err)
			}
			l.fold(rec)
		}
		from = next
	}
	_, done := l.answers[cause]
	return done, nil
}

// toProfile queues a command about targets or tokens, or one that takes a lease away.
func (t *term) toProfile(req *request) {
	l := t.profiles.get(req.caller.Profile)
	ok := l.add(t.cfg.LaneQueue, func(ctx context.Context) {
		answer, err := l.command(ctx, req)
		if err != nil {
			t.fail(req, err)
			return
		}
		t.answer(req.reply, answer)
	})
	if !ok {
		t.refuse(req.reply, events.Errorf(events.CodeRateLimited, "%d commands wait for profile %s already", t.cfg.LaneQueue, l.profile))
	}
}

func (l *profileLane) command(ctx context.Context, req *request) (any, error) {
	if a, ok := l.answers[req.id]; ok {
		return a, nil
	}
	if a, ok, err := l.targetCommand(ctx, req); ok {
		return a, err
	}
	if d, ok := req.data.(events.RevokeLease); ok {
		return l.revoke(ctx, req, d)
	}
	return l.tokenCommand(ctx, req)
}
