package authority

import (
	"context"
	"slices"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/imports"
	"keryx/internal/lifecycle"
)

const (
	// uploadsAtOnce is how many imports may be under way; each needs the memory of a few
	// MiB.
	uploadsAtOnce = 8
	// uploadIdle is how long an import may stand still before another may take its place.
	uploadIdle = time.Minute
)

// importer takes imports and reads what was imported. What is under way ends with the term.
type importer struct {
	t     *term
	mu    sync.Mutex
	store *imports.Store // opened at the first use
	open  map[events.ImportID]*imports.Upload
}

func newImporter(t *term) *importer {
	return &importer{t: t, open: make(map[events.ImportID]*imports.Upload)}
}

func (x *importer) stored(ctx context.Context) (*imports.Store, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.store == nil {
		var err error
		if x.store, err = imports.Open(ctx, x.t.cfg.Conn); err != nil {
			return nil, err
		}
	}
	return x.store, nil
}

// importCommand answers the commands of an import.
func (t *term) importCommand(ctx context.Context, req *request) {
	p := req.caller.Profile
	switch d := req.data.(type) {
	case events.BeginImport:
		t.reply(req)(t.imports.begin(ctx, p, d))
	case events.PutImport:
		t.reply(req)(t.imports.put(ctx, p, d))
	case events.EndImport:
		t.importEnd(req, d)
	}
}

func (x *importer) begin(ctx context.Context, p events.Profile, d events.BeginImport) (events.ImportState, error) {
	if done, err := x.t.importedBefore(p, d.Session, d.Content); done != nil || err != nil {
		return events.ImportState{Done: done}, err
	}
	store, err := x.stored(ctx)
	if err != nil {
		return events.ImportState{}, err
	}
	if err := x.makeRoom(p, d.Session); err != nil {
		return events.ImportState{}, err
	}
	u, err := store.Begin(ctx, p, d, events.ImportID(events.NewID()))
	if err != nil {
		return events.ImportState{}, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open[u.ID()] = u
	return events.ImportState{Import: u.ID()}, nil
}

// importedBefore returns the fact of an import of the very same record, and refuses
// another one of the same session.
func (t *term) importedBefore(p events.Profile, id events.SessionID, content string) (*events.SessionImported, error) {
	f, ok := t.profiles.get(p).imported(id)
	if !ok {
		return nil, nil
	}
	if f.Content != content {
		return nil, events.Errorf(events.CodeAlreadyImported,
			"session %s was imported from profile %s up to ordinal %s, with other content", id, f.FromProfile, f.LastOrdinal)
	}
	return &f, nil
}

// makeRoom gives up an import of the same session and those that stand still.
func (x *importer) makeRoom(p events.Profile, id events.SessionID) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, u := range x.open {
		profile, session := u.Of()
		if profile == p && session == id || len(x.open) >= uploadsAtOnce && time.Since(u.Used()) > uploadIdle {
			delete(x.open, key)
		}
	}
	if len(x.open) >= uploadsAtOnce {
		return events.Errorf(events.CodeRateLimited, "%d imports are under way", len(x.open))
	}
	return nil
}

// upload returns an import that is under way in a profile.
func (x *importer) upload(p events.Profile, id events.ImportID) (*imports.Upload, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	u := x.open[id]
	if u != nil {
		if profile, _ := u.Of(); profile == p {
			return u, nil
		}
	}
	return nil, events.Errorf(events.CodeUnknownImport, "no import %s is under way; begin again", id)
}

func (x *importer) put(ctx context.Context, p events.Profile, d events.PutImport) (events.ImportState, error) {
	if len(d.Data) > events.MaxImportPiece {
		return events.ImportState{}, events.Errorf(events.CodeTooLarge, "the piece has %d bytes, at most %d are taken", len(d.Data), events.MaxImportPiece)
	}
	u, err := x.upload(p, d.Import)
	if err != nil {
		return events.ImportState{}, err
	}
	next, err := u.Put(ctx, d.Offset, d.Data)
	return events.ImportState{Import: d.Import, Offset: next}, err
}

// importEnd puts an import on record, by which it is there.
func (t *term) importEnd(req *request, d events.EndImport) {
	l := t.profiles.get(req.caller.Profile)
	ok := l.add(t.cfg.LaneQueue, func(ctx context.Context) {
		t.reply(req)(l.importEnd(ctx, req, d))
	})
	if !ok {
		t.refuse(req.reply, events.Errorf(events.CodeRateLimited, "%d commands wait for profile %s already", t.cfg.LaneQueue, l.profile))
	}
}

func (l *profileLane) importEnd(ctx context.Context, req *request, d events.EndImport) (any, error) {
	if a, ok := l.answers[req.id]; ok {
		return a, nil
	}
	u, err := l.t.imports.upload(l.profile, d.Import)
	if err != nil {
		return nil, err
	}
	fact, err := u.End()
	if err != nil {
		return nil, err
	}
	if done, err := l.t.importedBefore(l.profile, fact.Session, fact.Content); done != nil || err != nil {
		return done, err
	}
	if err := l.append(ctx, originOf(req), events.TypeSessionImported, fact); err != nil {
		return nil, err
	}
	l.t.imports.mu.Lock()
	defer l.t.imports.mu.Unlock()
	delete(l.t.imports.open, d.Import)
	return fact, nil
}

// imported returns the fact of a session's import.
func (l *profileLane) imported(id events.SessionID) (events.SessionImported, bool) {
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	f, ok := l.imports[id]
	return f, ok
}

// importOf returns the import that a scope means: its own, or that of a session which is
// not there otherwise.
func (t *term) importOf(p events.Profile, s events.Scope) (events.SessionImported, bool) {
	if !s.Imported() && t.sessions.lane(p, s.Session()) != nil {
		return events.SessionImported{}, false
	}
	return t.profiles.get(p).imported(s.Session())
}

// importList returns a page of the imported sessions of a profile.
func (t *term) importList(p events.Profile, q events.ImportList) events.Imports {
	l := t.profiles.get(p)
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	out := events.Imports{Imports: []events.SessionImported{}}
	for _, f := range l.imports {
		if f.Session > q.After {
			out.Imports = append(out.Imports, f)
		}
	}
	slices.SortFunc(out.Imports, func(a, b events.SessionImported) int {
		if a.Session < b.Session {
			return -1
		}
		return 1
	})
	if out.More = len(out.Imports) > listLimit; out.More {
		out.Imports = out.Imports[:listLimit]
	}
	return out
}

// importPage sends a page of an imported record, as its bus would have.
func (t *term) importPage(ctx context.Context, req *request, f events.SessionImported, q events.LogPage, limit int) (events.LogPageEnd, error) {
	end := events.LogPageEnd{Tip: importTip(q.Scope, f)}
	store, err := t.imports.stored(ctx)
	if err != nil {
		return end, err
	}
	page, next, err := store.Events(ctx, req.caller.Profile, f, q.From, limit)
	if err != nil {
		return end, err
	}
	for _, m := range page {
		t.forward(req.reply, m)
	}
	if end.Next = next; len(page) > 0 {
		end.First = page[0].Sequence
	}
	return end, nil
}

func importTip(s events.Scope, f events.SessionImported) events.Tip {
	return events.Tip{Scope: s, Sequence: f.LastSequence, Ordinal: f.LastOrdinal}
}

// outputScope is the scope of the record whose output is asked for.
func outputScope(q events.Output) events.Scope {
	if q.Imported {
		return events.ImportScope(q.Session)
	}
	return q.Session.Scope()
}

// importOutput sends a page of output that came with an imported record.
func (t *term) importOutput(ctx context.Context, req *request, f events.SessionImported, q events.Output) {
	end, err := t.importOutputPage(ctx, req, f, q)
	if err != nil {
		t.fail(req, err)
		return
	}
	t.answerEnd(req.reply, end)
}

func (t *term) importOutputPage(ctx context.Context, req *request, f events.SessionImported, q events.Output) (events.OutputPage, error) {
	var end events.OutputPage
	store, err := t.imports.stored(ctx)
	if err != nil || q.TipOnly {
		return end, err
	}
	page, next, err := store.Output(ctx, req.caller.Profile, f, q.Exec, q.From, outputPageLimit)
	for _, m := range page {
		t.forward(req.reply, m)
		end.Stored = max(end.Stored, chunkNumber(m))
	}
	end.Next = next
	return end, err
}

// importShown answers what asks for the state of an imported record, if that is what to means.
func (t *term) importShown(req *request, to string) bool {
	f, ok := t.importOf(req.caller.Profile, events.Scope(to))
	if ok {
		t.inBackground(req, func(ctx context.Context, req *request) { t.reply(req)(t.importShow(ctx, req.caller.Profile, f)) })
	}
	return ok
}

// importShow folds an imported record.
func (t *term) importShow(ctx context.Context, p events.Profile, f events.SessionImported) (events.SessionView, error) {
	store, err := t.imports.stored(ctx)
	if err != nil {
		return events.SessionView{}, err
	}
	s := &lifecycle.State{Identity: lifecycle.Identity{Profile: p, Session: f.Session}}
	for from := f.FirstSequence; from != 0; {
		page, next, err := store.Events(ctx, p, f, from, pageLimit)
		if err != nil {
			return events.SessionView{}, err
		}
		for _, m := range page {
			// What cannot be decoded or folded is a hole, as in any record.
			rec, _ := events.DecodeRecord(events.LogSubject(p, f.Session.Scope()), m.Sequence, m.Header, m.Data)
			_ = lifecycle.Fold(s, rec)
		}
		from = next
	}
	return s.View(), nil
}

// foldImport needs stateMu held.
func (l *profileLane) foldImport(rec events.Record) {
	if rec.Type != events.TypeSessionImported {
		return
	}
	d, err := events.DataOf[events.SessionImported](rec)
	if err != nil {
		l.t.logger.Error("event cannot be folded", "profile", l.profile, "ordinal", rec.Ordinal, "error", err)
		return
	}
	if l.imports == nil {
		l.imports = make(map[events.SessionID]events.SessionImported)
	}
	if _, known := l.imports[d.Session]; !known { // the first stands
		l.imports[d.Session] = d
	}
}

// find tells which session something belongs to.
func (t *term) find(p events.Profile, id string) (events.FoundSession, error) {
	for _, k := range []struct {
		index idKind
		kind  events.FoundKind
	}{{idReceipt, events.FoundReceipt}, {idTurn, events.FoundTurn}, {idExec, events.FoundExec}} {
		if l := t.sessions.byID(k.index, p, id); l != nil {
			return events.FoundSession{Session: l.id, Kind: k.kind}, nil
		}
	}
	if f, ok := t.importOf(p, events.Scope(id)); ok {
		return events.FoundSession{Session: f.Session, Kind: events.FoundSessionKind, Imported: true}, nil
	}
	l, _, err := t.resolve(p, id)
	if err != nil {
		return events.FoundSession{}, err
	}
	return events.FoundSession{Session: l.id, Kind: events.FoundSessionKind}, nil
}
