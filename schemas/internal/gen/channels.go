package main

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"keryx/events"
)

// channel is one form of subject and what goes over it.
type channel struct {
	id, address        string
	words              string
	summary            string // of the operation
	action             string // what the bus does: send, receive; empty when it only passes by
	answer             string // the message that answers a command
	publish, subscribe []events.Role
	messages           []message
}

// message is one message of a channel.
type message struct {
	name, title, words string
	contentType        string // empty: the document's default
	headers, payload   object
}

func (m message) object() yaml.MapSlice {
	out := yaml.MapSlice{{Key: "name", Value: m.name}, {Key: "title", Value: m.title}}
	if m.words != "" {
		out = append(out, yaml.MapItem{Key: "summary", Value: m.words})
	}
	if m.contentType != "" {
		out = append(out, yaml.MapItem{Key: "contentType", Value: m.contentType})
	}
	if m.headers != nil {
		out = append(out, yaml.MapItem{Key: "headers", Value: m.headers})
	}
	return append(out, yaml.MapItem{Key: "payload", Value: m.payload})
}

const (
	answersID   = "answers"
	refusedName = "refused"
)

// Placeholders of the parameters, in the types that the functions of subjects take.
const (
	pProfile   events.Profile       = "{profile}"
	pPrincipal events.PrincipalName = "{principal}"
	pHost      events.PrincipalName = "{host}"
	pExecutor  events.PrincipalName = "{executor}"
	pInstance  events.Instance      = "{instance}"
	pScope     events.Scope         = "{scope}"
	pSession   events.SessionID     = "{session}"
	pTurn      events.TurnID        = "{turn}"
	pExec      events.ExecID        = "{exec}"
)

// parameterWords explain the parameters of addresses.
var parameterWords = map[string]string{
	"profile":   "A profile: nothing crosses it.",
	"principal": "The name of the principal whose subject it is.",
	"host":      "The name of a principal of role host.",
	"executor":  "The name of a principal of role executor.",
	"instance":  "A ULID, new at each start of the process.",
	"scope":     "A session's id, or _profile.",
	"session":   "A session's id.",
	"turn":      "A turn's id.",
	"exec":      "An exec's id.",
	"kind":      "What the lease is held on: target, session, account, policy.",
	"name":      "What the lease is held on, by name.",
	"request":   "Whatever the caller chose.",
}

var placeholder = regexp.MustCompile(`\{([a-z]+)\}`)

func parameters(address string) yaml.MapSlice {
	out := yaml.MapSlice{}
	for _, m := range placeholder.FindAllStringSubmatch(address, -1) {
		out = append(out, yaml.MapItem{Key: m[1], Value: object{"description": parameterWords[m[1]]}})
	}
	return out
}

// channels returns every channel that a principal may use.
func (b builder) channels() ([]channel, error) {
	orders, err := b.orderChannels()
	if err != nil {
		return nil, err
	}
	commands, answers, err := b.commandChannels()
	if err != nil {
		return nil, err
	}
	out := []channel{b.eventChannel(), b.leaseChannel()}
	out = append(out, commands...)
	out = append(out, answers)
	out = append(out, orders...)
	return append(out, passing()...), nil
}

func (b builder) eventChannel() channel {
	c := channel{
		id: "events", address: events.LiveSubject(pProfile, pScope), action: "send", subscribe: events.Roles(),
		summary: "Tell of what was appended to a log.",
		words: "Every event, just appended to the log of its scope, in the order of ordinals. What was missed is asked for " +
			"by keryx.cmd.log.page.v1.",
	}
	for _, e := range events.Catalogue() {
		if e.Class == events.ClassEvent {
			c.messages = append(c.messages, b.typed(string(e.Type), e.New(), ref("#/components/schemas/eventHeaders")))
		}
	}
	return c
}

// typed is a message whose payload is a schema of its own.
func (b builder) typed(name string, v any, headers object) message {
	t := reflect.TypeOf(v).Elem()
	words, _, _ := strings.Cut(sentence(b.words.docs[t.Name()], t.Name(), ""), " Answer:")
	return message{name: name, title: t.Name(), words: words, headers: headers, payload: ref("./" + name + ".json")}
}

func (b builder) leaseChannel() channel {
	// A key is checked by its own type; the parts of the subject are those of the key.
	return channel{
		id: "leases", address: strings.TrimSuffix(events.LeaseAll(pProfile), ">") + "{kind}.{name}", action: "send", subscribe: events.Roles(),
		summary: "Tell of a change of a lease.",
		words:   "Each change of a lease. An empty payload says that the record is gone.",
		messages: []message{{
			name: "lease", title: "LeaseRecord", words: sentence(b.words.docs["LeaseRecord"], "LeaseRecord", ""),
			payload: ref("#/components/schemas/lease"),
		}},
	}
}

func (b builder) commandChannels() ([]channel, channel, error) {
	answers := channel{
		id: answersID, address: events.InboxPrefix(pProfile, pPrincipal) + ".{request}", subscribe: events.Roles(),
		words: "Where answers to commands go: the reply subject of a command must begin with the caller's own prefix. The answers " +
			"of keryx.cmd.log.page.v1 and keryx.cmd.exec.output.v1 follow messages as stored, with the header " + events.HeaderSequence + ".",
	}
	var out []channel
	for _, e := range events.Catalogue() {
		if e.Class != events.ClassCommand {
			continue
		}
		address, err := events.CmdSubject(pProfile, pPrincipal, e.Type)
		if err != nil {
			return nil, channel{}, fmt.Errorf("subject of %s: %w", e.Type, err)
		}
		m := b.typed(string(e.Type), e.New(), ref("#/components/schemas/commandHeaders"))
		answer := b.typed(string(e.Type)+".answer", e.Answer(), statusHeaders(events.StatusOK))
		out = append(out, channel{
			id: "cmd." + e.Type.Short(), address: address, action: "receive", publish: e.Roles,
			summary: m.words, words: m.words, answer: answer.name, messages: []message{m},
		})
		answers.messages = append(answers.messages, answer)
	}
	answers.messages = append(answers.messages, message{
		name: refusedName, title: "Error", words: "Says why a command was refused; it has changed nothing.",
		headers: statusHeaders(events.StatusError), payload: ref("#/components/schemas/error"),
	})
	return out, answers, nil
}

// orderChannels finds out by its verb to whom each order goes.
func (b builder) orderChannels() ([]channel, error) {
	var out []channel
	for _, o := range events.Orders() {
		c := channel{id: "order." + orderVerb(o.Type), action: "send", messages: []message{b.typed(string(o.Type), o.New(), nil)}}
		c.words = c.messages[0].words
		c.summary = c.words
		switch verb := orderVerb(o.Type); {
		case slices.Contains(b.words.enums["HostVerb"], any(verb)):
			c.address, c.subscribe = events.HostSubject(pProfile, pPrincipal, pInstance, events.HostVerb(verb)), []events.Role{events.RoleHost}
		case slices.Contains(b.words.enums["ExecVerb"], any(verb)):
			c.address, c.subscribe = events.ExecSubject(pProfile, pPrincipal, pInstance, events.ExecVerb(verb)), []events.Role{events.RoleExecutor}
		case slices.Contains(b.words.enums["HandlerVerb"], any(verb)):
			c.address = events.HandlerSubject(pProfile, pPrincipal, pInstance, events.HandlerVerb(verb))
			c.subscribe = []events.Role{events.RoleHost, events.RoleExecutor, events.RoleGateway, events.RoleOperator}
		case verb == "question":
			c.address, c.subscribe = events.PolicySubject(pProfile, pPrincipal, pInstance), []events.Role{events.RoleGateway, events.RoleOperator}
		default:
			return nil, fmt.Errorf("order %s: its verb is neither a HostVerb, an ExecVerb nor a HandlerVerb, so it has no subject", o.Type)
		}
		out = append(out, c)
	}
	return out, nil
}

// orderVerb is the verb of keryx.order.<verb>.v1.
func orderVerb(t events.Type) string {
	verb, _, _ := strings.Cut(strings.TrimPrefix(string(t), "keryx.order."), ".")
	return verb
}

// passing are the channels between principals.
func passing() []channel {
	typists := []events.Role{events.RoleHost, events.RoleGateway, events.RoleOperator}
	text := object{"type": "string"}
	return []channel{
		{
			id: "output", address: events.OutSubject(pProfile, pExecutor, pSession, pExec),
			publish: []events.Role{events.RoleExecutor}, subscribe: events.Roles(),
			words:    "What an exec writes, in chunks of at most 64 KiB.",
			messages: []message{{name: "chunk", title: "Chunk", contentType: "application/octet-stream", headers: chunkHeaders(), payload: text}},
		},
		{
			id: "reply", address: events.PartSubject(pProfile, pHost, pSession, pTurn),
			publish: []events.Role{events.RoleHost}, subscribe: events.Roles(),
			words: "Pieces of a reply while it is made. They are not stored; keryx.turn.ended.v1 has the whole.",
			messages: []message{{name: "part", title: "Part", contentType: "text/plain", payload: text, headers: object{
				"type": "object", "properties": object{events.HeaderPart: object{"type": "string", "description": "Numbers the pieces from 1."}},
			}}},
		},
		{
			id: "typing", address: events.TTYSubject(pProfile, pExecutor, pPrincipal, pSession, pExec),
			publish: typists, subscribe: []events.Role{events.RoleExecutor},
			words:    "What a principal types into a terminal. It is not stored.",
			messages: []message{{name: "ttyFrame", title: "TTYFrame", payload: ref("#/components/schemas/ttyFrame")}},
		},
		{
			id: "typed", address: events.TypedSubject(pProfile, pExecutor, pPrincipal, pSession, pExec),
			publish: []events.Role{events.RoleExecutor}, subscribe: typists,
			words:    "What became of what was typed. It is not stored.",
			messages: []message{{name: "ttyAnswer", title: "TTYAnswer", payload: ref("#/components/schemas/ttyAnswer")}},
		},
	}
}
