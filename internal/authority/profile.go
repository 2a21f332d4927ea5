package authority

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/handlers"
	"keryx/internal/sessionlog"
	"keryx/internal/setup"
	"keryx/internal/targets"
	"keryx/internal/tokens"
)

// profileLane is what a profile has beside its sessions: targets, tokens, handlers, packages and
// audit in the scope _profile, and setup runs in scopes of their own.
type profileLane struct {
	serial
	profile events.Profile

	stateMu  sync.RWMutex
	targets  targets.State
	tokens   tokens.State
	setup    setup.State
	handlers handlers.State
	imports  map[events.SessionID]events.SessionImported
	tips     map[events.Scope]tip
	telling  map[tellKey]bool // used by the lane alone
	answers  map[events.CommandID]events.Raw
	recent   []events.CommandID // keys of answers, oldest first

	forgotten []events.SessionID // sessions that are removed, or are to be
}

// tip is where a scope's log ends. The zero value is an empty one.
type tip struct {
	sequence events.Sequence
	ordinal  events.Ordinal
	at       time.Time
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
		l = &profileLane{
			profile: p, answers: make(map[events.CommandID]events.Raw), tips: make(map[events.Scope]tip), telling: make(map[tellKey]bool),
		}
		l.serial = serial{t: x.t, settle: l.settle}
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
	l.tips[rec.Scope] = tip{rec.Sequence, rec.Ordinal, laterOf(rec.Time, l.tips[rec.Scope].at)}
	l.foldImport(rec)
	if err := errors.Join(l.targets.Fold(rec), l.tokens.Fold(rec), l.setup.Fold(rec), l.handlers.Fold(rec)); err != nil {
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
	case events.TypeHandlerRegistered:
		d, err := events.DataOf[events.HandlerRegistered](rec)
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
		var ok bool
		if answer, ok = l.setup.Answer(rec); !ok {
			return nil, false
		}
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

// append appends one event to the scope _profile.
func (l *profileLane) append(ctx context.Context, from origin, t events.Type, data any) error {
	return l.appendTo(ctx, events.ScopeProfile, from, t, data)
}

// appendTo appends one event to a scope, deciding its place anew after a lost race.
func (l *profileLane) appendTo(ctx context.Context, scope events.Scope, from origin, t events.Type, data any) error {
	for range maxRaces {
		lost, err := l.appendOnce(ctx, scope, from, t, data)
		if err != nil || !lost {
			return err
		}
		if _, done := l.answers[from.cause]; done {
			return nil
		}
	}
	return l.raced()
}

func (l *profileLane) raced() error {
	return events.Errorf(events.CodeConflict, "others changed profile %s at each of %d tries", l.profile, maxRaces)
}

// appendOnce appends one event at the end of a scope as this lane knows it. After a lost
// race it has read the scope anew, and what was decided may have to be decided again.
func (l *profileLane) appendOnce(ctx context.Context, scope events.Scope, from origin, t events.Type, data any) (lost bool, err error) {
	end := l.tips[scope]
	ev, err := newEvent(from.source, scope, t, laterOf(time.Now(), end.at), end.ordinal+1, data)
	if err != nil {
		return false, err
	}
	setAttributes(&ev, map[string]string{
		events.ExtCausation: string(from.cause), events.ExtActingFor: string(from.actingFor),
		events.ExtTraceParent: from.trace.parent, events.ExtTraceState: from.trace.state,
	})
	m, err := logMessage(l.profile, scope, ev)
	if err != nil {
		return false, err
	}
	m.Expect = &end.sequence
	sequences, err := l.t.write(ctx, []sessionlog.Message{m})
	var stale *sessionlog.SequenceError
	if errors.As(err, &stale) || errors.Is(err, sessionlog.ErrUnknownResult) {
		return true, l.refresh(ctx, scope)
	}
	if err != nil {
		return false, err
	}
	rec, err := events.RecordOf(l.profile, scope, sequences[0], ev)
	if err != nil {
		return false, fmt.Errorf("read back %s: %w", t, err)
	}
	l.fold(rec)
	return false, nil
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// refresh folds what the log has of a scope beyond the state.
func (l *profileLane) refresh(ctx context.Context, scope events.Scope) error {
	news, err := l.news(ctx, scope)
	for _, rec := range news {
		l.fold(rec)
	}
	return err
}

// load folds what the log has of scopes, in the order in which it was written.
func (l *profileLane) load(ctx context.Context, scopes []events.Scope) error {
	var all []events.Record
	for _, scope := range scopes {
		news, err := l.news(ctx, scope)
		if err != nil {
			return err
		}
		all = append(all, news...)
	}
	slices.SortFunc(all, func(a, b events.Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, rec := range all {
		l.fold(rec)
	}
	return nil
}

// news reads what the log has of a scope beyond the state.
func (l *profileLane) news(ctx context.Context, scope events.Scope) (out []events.Record, err error) {
	for from := l.tips[scope].sequence + 1; from != 0; {
		page, next, err := l.t.cfg.Log.Page(ctx, events.LogSubject(l.profile, scope), from, pageLimit, pageBytes)
		if err != nil {
			return out, fmt.Errorf("read %s of profile %s: %w", scope, l.profile, err)
		}
		for _, m := range page {
			rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
			if err != nil {
				l.t.logger.Error("event cannot be decoded", "profile", l.profile, "sequence", m.Sequence, "error", err)
			}
			out = append(out, rec)
		}
		from = next
	}
	return out, nil
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
	if d, ok := req.data.(events.RegisterHandler); ok {
		return l.registerHandler(ctx, req, d)
	}
	if setupCommand(req.data) {
		return l.setupCommand(ctx, req)
	}
	return l.tokenCommand(ctx, req)
}
