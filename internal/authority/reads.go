package authority

import (
	"context"
	"fmt"
	"slices"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// listLimit is the most sessions or tips in one answer.
const listLimit = 1000

func newCloudEvent() events.Event { return cloudevent.New() }

// inBackground runs a request that may wait for I/O, at most readers at once.
func (t *term) inBackground(req *request, fn func(context.Context, *request)) {
	if err := t.reads.Acquire(t.work, 1); err != nil {
		return // the term is over: the sender will ask the next
	}
	started := t.services.start(func() {
		defer t.reads.Release(1)
		fn(t.work, req)
	})
	if !started {
		t.reads.Release(1)
	}
}

// read answers commands that change nothing.
func (t *term) read(req *request) {
	switch d := req.data.(type) {
	case events.LogPage:
		t.inBackground(req, t.logPage)
	case events.Output:
		t.output(req, d)
	case events.TurnShow:
		t.turn(req, d.Turn)
	case events.TurnList:
		t.onSession(req, d.To, func(ctx context.Context, l *lane) (any, error) { return l.turnPage(ctx, d) })
	case events.SessionList:
		t.services.start(func() {
			t.settleStale(t.work)
			t.inBackground(req, func(_ context.Context, req *request) { t.reply(req)(t.list(req.caller.Profile, d), nil) })
		})
	case events.FindSession:
		t.reply(req)(t.find(req.caller.Profile, d.ID))
	case events.ImportList:
		t.reply(req)(t.importList(req.caller.Profile, d), nil)
	case events.SessionShow:
		if t.importShown(req, d.To) {
			return
		}
		t.onSession(req, d.To, func(_ context.Context, l *lane) (any, error) { return t.show(l, d.To) })
	case events.ReceiptShow:
		t.receipt(req, d.ID)
	case events.ApprovalShow:
		t.approval(req, d.Approval)
	case events.ApprovalList:
		t.approvals(req, d)
	case events.QuestionShow:
		t.onSession(req, string(d.Session), func(_ context.Context, l *lane) (any, error) { return l.question(d.Question) })
	case events.ShowCommand:
		t.onSession(req, string(d.Session), func(_ context.Context, l *lane) (any, error) { return l.shownInvocation(d.Invocation) })
	case events.CommandList:
		t.reply(req)(t.commandList(req, d), nil)
	case events.SelectTarget:
		t.reply(req)(t.selectTarget(req.caller.Profile, d.Name))
	case events.TargetList:
		t.reply(req)(t.targetList(req.caller.Profile), nil)
	case events.TokenList:
		t.reply(req)(t.tokenList(req.caller.Profile), nil)
	case events.PackageList:
		t.packageList(req, d)
	case events.ShowSetup:
		t.behindProfile(req, func() { t.inBackground(req, t.showSetup) })
	case events.SetupList:
		t.behindProfile(req, func() { t.reply(req)(t.setupList(req.caller.Profile, d)) })
	case events.LeaseList:
		t.reply(req)(events.Leases{Leases: t.granter.List(req.caller.Profile)}, nil)
	case events.LogTips:
		t.reply(req)(t.tips(req.caller.Profile, d), nil)
	default:
		t.refuse(req.reply, events.Errorf(events.CodeUnknownCommand, "%s is not read here", req.entry.Type))
	}
}

// onLane answers a read behind what the session's lane is doing now, with the state in
// memory. An event is live a moment before it is folded: who asks because of it shall not
// get an older state.
func (t *term) onLane(req *request, l *lane, answer func(context.Context)) {
	read := func(ctx context.Context) {
		if err := l.catchUp(ctx); err != nil {
			t.fail(req, err)
			return
		}
		answer(ctx)
	}
	if !l.add(t.cfg.LaneQueue, read) {
		t.refuse(req.reply, events.Errorf(events.CodeRateLimited, "%d commands wait for session %s already", t.cfg.LaneQueue, l.id))
	}
}

// onSession answers a read about the session of an id or name.
func (t *term) onSession(req *request, to string, answer func(context.Context, *lane) (any, error)) {
	l, _, err := t.resolve(req.caller.Profile, to)
	if err != nil {
		t.fail(req, err)
		return
	}
	t.onLane(req, l, func(ctx context.Context) { t.reply(req)(answer(ctx, l)) })
}

func (t *term) reply(req *request) func(any, error) {
	return func(answer any, err error) {
		if err != nil {
			t.fail(req, err)
			return
		}
		t.answer(req.reply, answer)
	}
}

func (t *term) list(p events.Profile, q events.SessionList) events.Sessions {
	limit := q.Limit
	if limit <= 0 || limit > listLimit {
		limit = listLimit
	}
	out := events.Sessions{Sessions: []events.SessionSummary{}}
	for l := range t.sessions.all(p) {
		if l.id <= q.After {
			continue
		}
		s := l.summary()
		t.fillHosts(p, &s)
		if s.Epoch == 0 || !wanted(s, q) {
			continue
		}
		if len(out.Sessions) == limit {
			out.More = true
			break
		}
		out.Sessions = append(out.Sessions, s)
	}
	return out
}

// fillHosts names the profile's default hosts where a session names none.
func (t *term) fillHosts(p events.Profile, s *events.SessionSummary) {
	if len(s.WantedHosts) == 0 {
		s.WantedHosts = t.cfg.Registry.DefaultHosts(p)
	}
}

func wanted(s events.SessionSummary, q events.SessionList) bool {
	if q.Open && s.Status == events.StatusFinalized {
		return false
	}
	return q.Host == "" || slices.Contains(s.WantedHosts, q.Host)
}

func (t *term) show(l *lane, to string) (events.SessionView, error) {
	if !l.state.Exists() {
		return events.SessionView{}, unknownSession(to)
	}
	v := l.state.View()
	t.fillHosts(l.profile, &v.SessionSummary)
	return v, nil
}

func (t *term) receipt(req *request, id events.ReceiptID) {
	l := t.sessions.byReceipt(req.caller.Profile, id)
	if l == nil {
		t.fail(req, unknownReceipt(id))
		return
	}
	t.onLane(req, l, func(ctx context.Context) { t.reply(req)(l.receipt(ctx, id)) })
}

func (t *term) tips(p events.Profile, q events.LogTips) events.Tips {
	out := events.Tips{Tips: []events.Tip{}}
	if len(q.Scopes) == 0 {
		return t.allTips(p, q.After)
	}
	for _, scope := range q.Scopes {
		if tip, ok := t.tip(p, scope); ok {
			out.Tips = append(out.Tips, tip)
		}
	}
	return out
}

// allTips pages through every scope of a profile: _profile, accounts and the setup runs
// sort after every ULID.
func (t *term) allTips(p events.Profile, after events.Scope) events.Tips {
	out := events.Tips{Tips: []events.Tip{}}
	for l := range t.sessions.all(p) {
		if l.id.Scope() <= after {
			continue
		}
		if len(out.Tips) == listLimit {
			out.More = true
			return out
		}
		if tip, ok := t.tip(p, l.id.Scope()); ok {
			out.Tips = append(out.Tips, tip)
		}
	}
	for _, scope := range t.scopesBeside(p) {
		if scope <= after {
			continue
		}
		if len(out.Tips) == listLimit {
			out.More = true
			return out
		}
		if tip, ok := t.tip(p, scope); ok {
			out.Tips = append(out.Tips, tip)
		}
	}
	return out
}

func (t *term) tip(p events.Profile, scope events.Scope) (events.Tip, bool) {
	tip := events.Tip{Scope: scope}
	if ofProfileLane(scope) {
		l := t.profiles.get(p)
		l.stateMu.RLock()
		defer l.stateMu.RUnlock()
		tip.Sequence, tip.Ordinal = l.tips[scope].sequence, l.tips[scope].ordinal
		return tip, tip.Sequence != 0
	}
	if name, ok := scope.Account(); ok {
		return t.accounts.get(p, name).tip()
	}
	if f, ok := t.importOf(p, scope); ok {
		return importTip(scope, f), true
	}
	l := t.sessions.lane(p, events.SessionID(scope))
	if l == nil {
		return tip, false
	}
	if !l.view(func(s *lifecycle.State) { tip.Sequence, tip.Ordinal = s.LastSequence, s.LastOrdinal }) {
		b, _ := l.glance()
		tip.Sequence, tip.Ordinal = b.Summary.LastSeq, b.Summary.LastOrd
	}
	return tip, tip.Sequence != 0
}

// turnsLimit is how many turns a page has unless it says otherwise.
const turnsLimit = 100

// turn reads what is known of a turn: its place from the fold, its words from the log.
func (t *term) turn(req *request, id events.TurnID) {
	l := t.sessions.byTurn(req.caller.Profile, id)
	if l == nil {
		t.fail(req, unknownTurn(id))
		return
	}
	t.onLane(req, l, func(ctx context.Context) {
		e, err := l.turnEntry(ctx, id)
		if err != nil {
			t.fail(req, err)
			return
		}
		t.inBackground(req, func(ctx context.Context, req *request) { t.reply(req)(l.turnView(ctx, e)) })
	})
}

func (l *lane) turnView(ctx context.Context, e lifecycle.TurnEntry) (events.TurnView, error) {
	v := events.TurnView{Turn: e.Turn, Session: l.id, Epoch: e.Epoch, State: events.TurnRunning}
	for _, seq := range []events.Sequence{e.StartSequence, e.EndSequence, e.LateSequence} {
		if seq == 0 {
			continue
		}
		if err := l.addToTurn(ctx, &v, seq); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (l *lane) addToTurn(ctx context.Context, v *events.TurnView, seq events.Sequence) error {
	page, _, err := l.t.cfg.Log.Page(ctx, events.LogSubject(l.profile, l.id.Scope()), seq, 1, pageBytes)
	if err != nil {
		return fmt.Errorf("read turn %s: %w", v.Turn, err)
	}
	if len(page) == 0 || page[0].Sequence != seq {
		return events.Errorf(events.CodeUnknownTurn, "the record of turn %s at sequence %d is no longer kept", v.Turn, seq)
	}
	rec, err := events.DecodeRecord(page[0].Subject, seq, page[0].Header, page[0].Data)
	if err != nil {
		return fmt.Errorf("decode turn %s: %w", v.Turn, err)
	}
	return fillTurn(v, rec)
}

func fillTurn(v *events.TurnView, rec events.Record) error {
	switch rec.Type {
	case events.TypeTurnStarted:
		d, err := events.DataOf[events.TurnStarted](rec)
		if err != nil {
			return err
		}
		v.Host, v.Items, v.TaskID, v.StartedAt = d.Host, d.Items, d.TaskID, rec.Time
	case events.TypeTurnEnded:
		d, err := events.DataOf[events.TurnEnded](rec)
		if err != nil {
			return err
		}
		v.State, v.EndedAt, v.Outcome, v.Reply, v.Error = events.TurnEndedState, rec.Time, d.Outcome, d.Reply, d.Error
	case events.TypeTurnReportedLate:
		d, err := events.DataOf[events.TurnReportedLate](rec)
		if err != nil {
			return err
		}
		v.State, v.Late = events.TurnReportedOnce, &d
	}
	return nil
}
