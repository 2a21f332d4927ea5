package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// accountLane is the record of one platform account: what its gateway received and sent.
// The authority keeps nothing of it but where it ends: its readers fold it.
type accountLane struct {
	serial
	profile events.Profile
	account events.AccountName

	stateMu  sync.RWMutex
	known    bool // the end was read
	sequence events.Sequence
	ordinal  events.Ordinal
	lastTime time.Time
	done     map[events.CommandID]events.Sequence
	recent   []events.CommandID // keys of done, oldest first
}

// keptRecords is how many commands about an account are answered again.
const keptRecords = 256

// accountIndex is the accounts in memory.
type accountIndex struct {
	t  *term
	mu sync.Mutex
	m  map[events.Profile]map[events.AccountName]*accountLane
}

func newAccountIndex(t *term) *accountIndex {
	return &accountIndex{t: t, m: make(map[events.Profile]map[events.AccountName]*accountLane)}
}

func (x *accountIndex) get(p events.Profile, name events.AccountName) *accountLane {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.m[p] == nil {
		x.m[p] = make(map[events.AccountName]*accountLane)
	}
	l, ok := x.m[p][name]
	if !ok {
		l = &accountLane{profile: p, account: name, done: make(map[events.CommandID]events.Sequence)}
		l.serial = serial{t: x.t, settle: func(context.Context) {}}
		x.m[p][name] = l
		x.t.profiles.get(p) // its profile is known from now on
	}
	return l
}

// scopes are those of the accounts of a profile that have a record.
func (x *accountIndex) scopes(p events.Profile) []events.Scope {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []events.Scope
	for _, l := range x.m[p] {
		if tip, ok := l.tip(); ok {
			out = append(out, tip.Scope)
		}
	}
	return out
}

// scopesBeside are what a profile has beside its sessions, in order.
func (t *term) scopesBeside(p events.Profile) []events.Scope {
	out := append(t.profiles.get(p).scopes(), t.accounts.scopes(p)...)
	slices.Sort(out)
	return out
}

func (l *accountLane) tip() (events.Tip, bool) {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	return events.Tip{Scope: l.account.Scope(), Sequence: l.sequence, Ordinal: l.ordinal}, l.sequence != 0
}

// reached takes a record of the account into memory, if it is beyond what is known.
func (l *accountLane) reached(rec events.Record) {
	defer l.t.frontier.reached(rec.Sequence)
	l.stateMu.Lock()
	defer l.stateMu.Unlock()
	if rec.Sequence <= l.sequence {
		return
	}
	l.known, l.sequence, l.ordinal = true, rec.Sequence, rec.Ordinal
	l.lastTime = laterOf(rec.Time, l.lastTime)
	if rec.Causation == "" {
		return
	}
	id := events.CommandID(strings.Clone(string(rec.Causation))) // of a message's whole header
	l.done[id] = rec.Sequence
	if l.recent = append(l.recent, id); len(l.recent) > keptRecords {
		delete(l.done, l.recent[0])
		l.recent = l.recent[1:]
	}
}

// read takes the end of the record from the log, which another authority may have moved.
func (l *accountLane) read(ctx context.Context) error {
	m, err := l.t.cfg.Log.Last(ctx, events.LogSubject(l.profile, l.account.Scope()))
	if errors.Is(err, sessionlog.ErrNone) {
		l.stateMu.Lock()
		defer l.stateMu.Unlock()
		l.known = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read account %s: %w", l.account, err)
	}
	rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
	if err != nil {
		return fmt.Errorf("read account %s: %w", l.account, err)
	}
	l.reached(rec)
	return nil
}

func (l *accountLane) isKnown() bool {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	return l.known
}

func (l *accountLane) answered(id events.CommandID) (events.Done, bool) {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	seq, ok := l.done[id]
	return events.Done{Sequence: seq}, ok
}

// toAccount queues a command about an account.
func (t *term) toAccount(req *request) {
	d, ok := req.data.(events.RecordGateway)
	if !ok {
		t.refuse(req.reply, events.Errorf(events.CodeUnknownCommand, "%s is not about an account", req.entry.Type))
		return
	}
	l := t.accounts.get(req.caller.Profile, d.Account)
	queued := l.add(t.cfg.LaneQueue, func(ctx context.Context) {
		done, err := l.record(ctx, req, d)
		if err != nil {
			t.fail(req, err)
			return
		}
		t.answer(req.reply, done)
	})
	if !queued {
		t.refuse(req.reply, events.Errorf(events.CodeRateLimited, "%d commands wait for account %s already", t.cfg.LaneQueue, d.Account))
	}
}

// record appends one fact for the holder of the account's lease.
func (l *accountLane) record(ctx context.Context, req *request, d events.RecordGateway) (events.Done, error) {
	if done, ok := l.answered(req.id); ok {
		return done, nil
	}
	fact, data, ok := d.Fact()
	if !ok {
		return events.Done{}, events.Errorf(events.CodeInvalid, "the command names one fact, of account %q", d.Account)
	}
	if err := l.t.checkAccountLease(req.caller, d); err != nil {
		return events.Done{}, err
	}
	for range maxRaces {
		if !l.isKnown() {
			if err := l.read(ctx); err != nil {
				return events.Done{}, err
			}
		}
		if done, ok := l.answered(req.id); ok {
			return done, nil
		}
		done, err := l.append(ctx, originOf(req), fact, data, d.Fence)
		var stale *sessionlog.SequenceError
		if !errors.As(err, &stale) && !errors.Is(err, sessionlog.ErrUnknownResult) {
			return done, err
		}
		if err := l.read(ctx); err != nil {
			return events.Done{}, err
		}
	}
	return events.Done{}, events.Errorf(events.CodeConflict, "others changed account %s at each of %d tries", l.account, maxRaces)
}

// checkAccountLease returns nil if the caller's instance speaks for the account.
func (t *term) checkAccountLease(caller events.Principal, d events.RecordGateway) error {
	key := events.LeaseKey{Profile: caller.Profile, Kind: events.LeaseAccount, Name: string(d.Account)}
	rec, fence, ok := t.granter.Current(key)
	if !ok || rec.State != events.LeaseHeld || rec.Holder != caller.Name || rec.Instance != d.Instance || fence != d.Fence {
		return events.Errorf(events.CodeLeaseLost, "%s does not hold %s under fence %s", caller.Name, key, d.Fence)
	}
	return nil
}

func (l *accountLane) append(ctx context.Context, from origin, t events.Type, data any, fence events.Fence) (events.Done, error) {
	scope := l.account.Scope()
	ev, err := newEvent(from.source, scope, t, laterOf(time.Now(), l.lastTime), l.ordinal+1, data)
	if err != nil {
		return events.Done{}, err
	}
	setAttributes(&ev, map[string]string{
		events.ExtCausation: string(from.cause), events.ExtActingFor: string(from.actingFor), events.ExtLeaseFence: fence.String(),
		events.ExtTraceParent: from.trace.parent, events.ExtTraceState: from.trace.state,
	})
	m, err := logMessage(l.profile, scope, ev)
	if err != nil {
		return events.Done{}, err
	}
	expect := l.sequence
	m.Expect = &expect
	sequences, err := l.t.write(ctx, []sessionlog.Message{m})
	if err != nil {
		return events.Done{}, err
	}
	rec, err := events.RecordOf(l.profile, scope, sequences[0], ev)
	if err != nil {
		return events.Done{}, fmt.Errorf("read back %s: %w", t, err)
	}
	l.reached(rec)
	return events.Done{Sequence: rec.Sequence}, nil
}

// accountKnown reads the end of an account's record if scope is one and memory lacks it;
// ok is false for scopes of other things, and accounts without a record.
func (t *term) accountKnown(ctx context.Context, p events.Profile, scope events.Scope) (ok bool, err error) {
	name, ok := scope.Account()
	if !ok {
		return false, nil
	}
	l := t.accounts.get(p, name)
	if !l.isKnown() {
		if err := l.read(ctx); err != nil {
			return false, err
		}
	}
	_, ok = l.tip()
	return ok, nil
}
