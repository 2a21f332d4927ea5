package authority

import (
	"context"
	"fmt"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
	"keryx/internal/sessionlog"
)

// trace is the W3C trace context that a command carries into its events.
type trace struct{ parent, state string }

func traceOf(e events.Event) trace {
	return trace{parent: extension(e, events.ExtTraceParent), state: extension(e, events.ExtTraceState)}
}

func extension(e events.Event, name string) string {
	s, _ := e.Extensions()[name].(string)
	return s
}

// step is one decision with what its events say about their cause.
type step struct {
	decision  lifecycle.Decision
	by        events.Principal
	cause     events.CommandID
	actingFor events.TokenName
	trace     trace
	hits      []lifecycle.NameHit
	now       time.Time
}

// commit appends a step's drafts, folds them, and does what follows. Nothing has
// changed when it returns an error, except that after [sessionlog.ErrUnknownResult]
// the events may be on the log.
func (l *lane) commit(ctx context.Context, s step) error {
	made, messages, err := l.messages(s)
	if err != nil {
		return err
	}
	l.announce(s.decision.Drafts)
	sequences, err := l.t.write(ctx, messages)
	if err != nil {
		l.t.sessions.dropUnborn(l)
		return err
	}
	names := len(messages) - len(made)
	defer func() { // after the fold: a name in the index leads to a session in it
		for i, rec := range s.decision.Names {
			l.t.sessions.setName(l.profile, nameEntry{record: rec, sequence: sequences[i]})
		}
		for _, seq := range sequences {
			l.t.frontier.reached(seq)
		}
	}()
	for i, ev := range made {
		rec, err := events.RecordOf(l.profile, l.id.Scope(), sequences[names+i], ev)
		if err != nil {
			return fmt.Errorf("read back %s: %w", ev.Type(), err)
		}
		l.fold(rec, nil)
		l.follow(ctx, rec)
	}
	return nil
}

// announce makes the session, its items and turns findable before their events are live:
// who asks because of one then waits behind this commit. What comes of a commit that
// fails is found too, and then not known.
func (l *lane) announce(drafts []lifecycle.Draft) {
	if !l.state.Exists() {
		l.t.sessions.put(l)
	}
	for _, d := range drafts {
		l.t.sessions.note(l, d.Data)
	}
}

// write appends one message, or several all or none.
func (t *term) write(ctx context.Context, ms []sessionlog.Message) ([]events.Sequence, error) {
	sequences, err := t.gatherer.append(ctx, ms)
	if err != nil {
		return nil, err
	}
	t.cfg.Note(sequences[len(sequences)-1])
	return sequences, nil
}

// messages encodes a step: its names first, then its events.
func (l *lane) messages(s step) ([]events.Event, []sessionlog.Message, error) {
	var out []sessionlog.Message
	for _, rec := range s.decision.Names {
		m, err := nameMessage(l.profile, rec, s.hits)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, m)
	}
	made := make([]events.Event, 0, len(s.decision.Drafts))
	for i, d := range s.decision.Drafts {
		ev, err := l.event(s, d, i)
		if err != nil {
			return nil, nil, err
		}
		m, err := logMessage(l.profile, l.id.Scope(), ev)
		if err != nil {
			return nil, nil, err
		}
		if i == 0 { // in a batch only the first message of a subject may expect
			expect := l.state.LastSequence
			m.Expect = &expect
		}
		made, out = append(made, ev), append(out, m)
	}
	return made, out, nil
}

func nameMessage(p events.Profile, rec events.NameRecord, hits []lifecycle.NameHit) (sessionlog.Message, error) {
	body, err := events.MarshalData(rec)
	if err != nil {
		return sessionlog.Message{}, fmt.Errorf("encode name record: %w", err)
	}
	var expect events.Sequence
	for _, h := range hits {
		if h.Name == rec.Name {
			expect = h.Sequence
		}
	}
	return sessionlog.Message{Subject: events.IDSubject(p, rec.Name), Data: body, Expect: &expect}, nil
}

func logMessage(p events.Profile, s events.Scope, ev events.Event) (sessionlog.Message, error) {
	header, body, err := events.Encode(ev)
	if err != nil {
		return sessionlog.Message{}, fmt.Errorf("encode %s: %w", ev.Type(), err)
	}
	if len(body) > events.MaxData {
		return sessionlog.Message{}, events.Errorf(events.CodeTooLarge, "the event %s would have %d bytes of data, at most %d are kept", ev.Type(), len(body), events.MaxData)
	}
	return sessionlog.Message{Subject: events.LogSubject(p, s), Header: header, Data: body}, nil
}

// event makes the CloudEvent of a draft, the i-th of its step.
func (l *lane) event(s step, d lifecycle.Draft, i int) (events.Event, error) {
	when := s.now
	if when.Before(l.state.LastTime) { // an event is never older than the one before
		when = l.state.LastTime
	}
	by, cause, actingFor := s.by, s.cause, s.actingFor
	if d.Own { // done by the authority on the way to the command's own event
		by, cause, actingFor = l.authority(), "", ""
	}
	ev, err := newEvent(by.Source(), l.id.Scope(), d.Type, when, l.state.LastOrdinal+events.Ordinal(1+i), d.Data)
	if err != nil {
		return ev, err
	}
	setAttributes(&ev, map[string]string{
		events.ExtEpoch: orEmpty(d.Epoch.String(), d.Epoch == 0), events.ExtTurn: string(d.Turn),
		events.ExtCausation: string(cause), events.ExtSessionFence: d.SessionFence.String(),
		events.ExtLeaseFence: d.LeaseFence.String(), events.ExtTraceParent: s.trace.parent,
		events.ExtTraceState: s.trace.state, events.ExtActingFor: string(actingFor),
	})
	return ev, nil
}

func orEmpty(s string, empty bool) string {
	if empty {
		return ""
	}
	return s
}

func newEvent(source string, scope events.Scope, t events.Type, when time.Time, ordinal events.Ordinal, data any) (events.Event, error) {
	body, err := events.MarshalData(data)
	if err != nil {
		return events.Event{}, fmt.Errorf("encode data of %s: %w", t, err)
	}
	ev := newCloudEvent()
	ev.SetID(events.NewID())
	ev.SetType(string(t))
	ev.SetSource(source)
	ev.SetSubject(string(scope))
	ev.SetTime(when.UTC())
	ev.SetDataSchema(t.Schema())
	ev.SetDataContentType("application/json")
	ev.DataEncoded = body
	setAttributes(&ev, map[string]string{events.ExtOrdinal: ordinal.String()})
	return ev, nil
}

func setAttributes(ev *events.Event, attributes map[string]string) {
	for name, value := range attributes {
		if value != "" {
			ev.SetExtension(name, value)
		}
	}
}

// fold applies a committed event and indexes what its data brings; nil is nothing new.
func (l *lane) fold(rec events.Record, data any) {
	l.stateMu.Lock()
	err := lifecycle.Fold(l.state, rec)
	l.stateMu.Unlock()
	if err != nil {
		l.t.logger.Error("event cannot be folded", "session", l.id, "ordinal", rec.Ordinal, "error", err)
	}
	l.t.sessions.note(l, data)
	l.t.sessions.touch(l.slot)
	l.last = rec.ID
	if l.since++; l.since >= snapshotEvery {
		l.saveSnapshot()
	}
}

// refresh folds what another writer has appended since.
func (l *lane) refresh(ctx context.Context) error {
	from := l.state.LastSequence + 1
	for {
		page, next, err := l.t.cfg.Log.Page(ctx, events.LogSubject(l.profile, l.id.Scope()), from, pageLimit, pageBytes)
		if err != nil {
			return fmt.Errorf("read session %s anew: %w", l.id, err)
		}
		for _, m := range page {
			rec, err := events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
			if err != nil {
				l.t.logger.Error("event cannot be decoded", "session", l.id, "sequence", m.Sequence, "error", err)
			}
			l.fold(rec, dataOf(rec))
			l.t.frontier.reached(m.Sequence)
		}
		if next == 0 {
			return nil
		}
		from = next
	}
}
