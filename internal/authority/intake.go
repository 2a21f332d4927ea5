package authority

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/schemas"
)

// request is a command whose caller, form and role have been checked.
type request struct {
	caller events.Principal
	entry  events.Entry
	event  events.Event
	id     events.CommandID
	data   any // the command's data struct, by value
	reply  string
	// actingFor is the token for which the caller sends this; empty for itself.
	actingFor events.TokenName
	// ask is the session that waits for a setup, for a plan that one waits for.
	ask *events.SetupAsk
	// confirmed is set once the log itself was asked for a session not in memory.
	confirmed bool
}

// take checks a message and hands it to the lane or reader that answers it. It runs
// on the subscription's goroutine and never waits for I/O.
func (t *term) take(m *nats.Msg) {
	profile, name, noun, verb, err := events.ParseCmdSubject(m.Subject)
	if err != nil {
		t.logger.Warn("command on a malformed subject", "subject", m.Subject)
		return
	}
	caller, known := t.cfg.Registry.Lookup(profile, name)
	if !known {
		t.logger.Warn("command of an unknown principal", "profile", profile, "principal", name)
		return
	}
	if !strings.HasPrefix(m.Reply, events.InboxPrefix(profile, name)+".") {
		t.auditReply(caller, m)
		return
	}
	if !t.limits.allow(caller) {
		t.refuse(m.Reply, events.Errorf(events.CodeRateLimited, "%s sends more than %d commands a second", name, t.cfg.CommandRate))
		return
	}
	req, refusal := t.check(caller, m, noun, verb)
	if refusal != nil {
		t.refuse(m.Reply, refusal)
		t.refused(caller, m, refusal)
		return
	}
	if req.actingFor != "" {
		t.acting(req)
		return
	}
	t.admit(req)
}

// admit hands on a request whose sender may send it, if there is room for what it begins.
func (t *term) admit(req *request) {
	if err := t.room(req); err != nil {
		t.refuse(req.reply, asError(err, events.CodeStoreFull))
		return
	}
	t.dispatch(req)
}

// room refuses what would begin something that needs room to end. It is no dead letter:
// that would need room as well.
func (t *term) room(req *request) error {
	switch req.data.(type) {
	case events.Register, events.Submit, events.StartExec, events.BeginImport, events.PutImport:
		return t.cfg.Room()
	}
	return nil
}

// check decodes a message into a request or says why it is refused.
func (t *term) check(caller events.Principal, m *nats.Msg, noun, verb string) (*request, *events.Error) {
	entry, ok := events.FindCommand(noun, verb)
	if !ok {
		return nil, events.Errorf(events.CodeUnknownCommand, "there is no command %s.%s", noun, verb)
	}
	if err := checkSize(m); err != nil {
		return nil, err
	}
	ev, err := events.Decode(m.Header, m.Data)
	if err != nil {
		return nil, asError(err, events.CodeUndecodable)
	}
	if ev.Type() != string(entry.Type) {
		return nil, events.Errorf(events.CodeUnknownCommand, "subject says %s, type says %s", entry.Type, ev.Type())
	}
	if !slices.Contains(entry.Roles, caller.Role) {
		return nil, events.Errorf(events.CodeForbidden, "role %s may not send %s", caller.Role, entry.Type.Short())
	}
	req := &request{caller: caller, entry: entry, event: ev, id: events.CommandID(ev.ID()), reply: m.Reply, actingFor: events.TokenName(extension(ev, events.ExtActingFor))}
	if refusal := t.checkActing(req); refusal != nil {
		return nil, refusal
	}
	if refusal := req.decodeData(); refusal != nil {
		return nil, refusal
	}
	return req, nil
}

func checkSize(m *nats.Msg) *events.Error {
	if len(m.Data) > events.MaxData {
		return events.Errorf(events.CodeTooLarge, "the data has %d bytes, at most %d are taken", len(m.Data), events.MaxData)
	}
	size := 0
	for k, vs := range m.Header {
		for _, v := range vs {
			size += len(k) + len(v)
		}
	}
	if size > events.MaxHeaders {
		return events.Errorf(events.CodeTooLarge, "the headers have %d bytes, at most %d are taken", size, events.MaxHeaders)
	}
	return nil
}

func (r *request) decodeData() *events.Error {
	if !events.IsULID(string(r.id)) {
		return &events.Error{Code: events.CodeInvalid, Path: "id", Message: "a command's id is a ULID in upper case"}
	}
	data := r.event.Data()
	if err := schemas.Validate(string(r.entry.Type), data); err != nil {
		refusal := &events.Error{Code: events.CodeInvalid, Message: err.Error()}
		var v *schemas.ValidationError
		if errors.As(err, &v) {
			refusal.Message, refusal.Path = v.Message, v.Path
		}
		return refusal
	}
	into := r.entry.New()
	if err := json.Unmarshal(data, into); err != nil {
		return events.Errorf(events.CodeInvalid, "the data does not fit %s: %v", r.entry.Type.Short(), err)
	}
	r.data = reflect.ValueOf(into).Elem().Interface()
	return nil
}

// sent is the command's own time, by its sender's clock.
func (r *request) sent() time.Time { return r.event.Time() }

// asError returns the typed refusal in err's chain, or one of the given code.
func asError(err error, code events.Code) *events.Error {
	var e *events.Error
	if errors.As(err, &e) {
		return e
	}
	return &events.Error{Code: code, Message: err.Error()}
}
