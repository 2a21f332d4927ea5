package authority

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Headers of a dead letter beside those of the refused input itself.
const (
	headerDeadCode    = "Keryx-Dead-Code"
	headerDeadReason  = "Keryx-Dead-Reason"
	headerDeadPath    = "Keryx-Dead-Path"
	headerDeadSubject = "Keryx-Dead-Subject"
)

// refused keeps what became of input that was not taken: attempts beyond one's rights
// go on record, input that could be corrected is kept as a dead letter.
func (t *term) refused(caller events.Principal, m *nats.Msg, e *events.Error) {
	switch e.Code {
	case events.CodeForbidden:
		_, _, noun, verb, err := events.ParseCmdSubject(m.Subject)
		if err == nil {
			t.audit(caller, actingForOf(m), events.Type(fmt.Sprintf("keryx.cmd.%s.%s.v1", noun, verb)), e, "")
		}
	case events.CodeInvalid, events.CodeUndecodable, events.CodeTooLarge, events.CodeUnknownCommand:
		t.bury(caller, m, e)
	}
}

// actingForOf is the token that a refused command names, if that can be read.
func actingForOf(m *nats.Msg) events.TokenName {
	ev, err := events.Decode(m.Header, m.Data)
	if err != nil {
		return ""
	}
	return events.TokenName(extension(ev, events.ExtActingFor))
}

// bury keeps refused input with its reason. The stream is not part of the truth:
// what cannot be kept is logged and the refusal stands.
func (t *term) bury(caller events.Principal, m *nats.Msg, e *events.Error) {
	if !t.limits.allowRecord(caller) {
		return
	}
	d := nats.NewMsg(events.DeadSubject(caller.Profile, caller.Name))
	if len(m.Data) <= events.MaxData {
		d.Data = m.Data
		for k, v := range m.Header {
			if !strings.HasPrefix(k, "Nats-") { // those would be orders to the server
				d.Header[k] = v
			}
		}
	}
	d.Header.Set(headerDeadCode, string(e.Code))
	d.Header.Set(headerDeadReason, printable(e.Message))
	d.Header.Set(headerDeadPath, printable(e.Path))
	d.Header.Set(headerDeadSubject, m.Subject)
	if err := t.cfg.Conn.PublishMsg(d); err != nil {
		t.logger.Warn("keep a dead letter", "principal", caller.Name, "error", err)
	}
}

// printable keeps a header value on one line.
func printable(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if r < ' ' {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}

// auditReply records a command whose answer was to go elsewhere than to its sender.
// It is not answered at all: the reply subject is what cannot be trusted.
func (t *term) auditReply(caller events.Principal, m *nats.Msg) {
	_, _, noun, verb, err := events.ParseCmdSubject(m.Subject)
	if err != nil {
		return
	}
	t.audit(caller, "", events.Type(fmt.Sprintf("keryx.cmd.%s.%s.v1", noun, verb)), events.Errorf(events.CodeForbidden,
		"the reply subject is not below %s", events.InboxPrefix(caller.Profile, caller.Name)), m.Reply)
}

// audit puts an attempt beyond one's rights on record, rate-limited.
func (t *term) audit(caller events.Principal, actingFor events.TokenName, command events.Type, e *events.Error, target string) {
	t.logger.Warn("refused", "principal", caller.Name, "profile", caller.Profile, "acting_for", actingFor, "command", command, "reason", e.Message)
	if !t.limits.allowRecord(caller) {
		return
	}
	t.profiles.get(caller.Profile).appendFact(events.TypeAuditRefused, events.AuditRefused{
		Principal: caller.Name, Command: command, Code: e.Code, Message: clip(e.Message), Target: clip(target), ActingFor: actingFor,
	})
}

// clip bounds what a stranger can make the log keep of one attempt.
func clip(s string) string {
	const most = 512
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
