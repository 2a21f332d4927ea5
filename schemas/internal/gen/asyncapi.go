package main

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"

	"keryx/events"
)

// asyncAPIFile is the name of the document that asyncAPI makes.
const asyncAPIFile = "asyncapi.yaml"

// asyncAPI returns the subjects of the bus, and what goes over them, as an AsyncAPI 3.0
// document in YAML. Its payloads refer to the schemas beside it. The subjects are made by
// the functions that the programs use, with the names of their parameters in braces.
func (b builder) asyncAPI() ([]byte, error) {
	channels, err := b.channels()
	if err != nil {
		return nil, err
	}
	doc := yaml.MapSlice{
		{Key: "asyncapi", Value: "3.0.0"},
		{Key: "id", Value: "urn:keryx:bus"},
		{Key: "info", Value: yaml.MapSlice{
			{Key: "title", Value: "Keryx"},
			{Key: "version", Value: "1"},
			{Key: "description", Value: "The session bus on NATS, as the bus sees it: it receives commands and sends events. " +
				"Made from the catalogue of types by `go generate ./schemas`; do not edit. " +
				"x-keryx-publish and x-keryx-subscribe are the roles of principals that may do so; a principal " +
				"publishes in its own name only, and hears of its own profile only."},
		}},
		{Key: "defaultContentType", Value: "application/json"},
		{Key: "servers", Value: object{"bus": yaml.MapSlice{
			{Key: "host", Value: "127.0.0.1:4222"},
			{Key: "protocol", Value: "nats"},
			{Key: "description", Value: "The address of `bus serve --listen`."},
			{Key: "security", Value: []any{ref("#/components/securitySchemes/nkey")}},
		}}},
		{Key: "channels", Value: channelObjects(channels)},
		{Key: "operations", Value: operationObjects(channels)},
		{Key: "components", Value: b.components(channels)},
	}
	out, err := yaml.MarshalWithOptions(doc, yaml.Indent(2))
	if err != nil {
		return nil, fmt.Errorf("write the AsyncAPI document: %w", err)
	}
	return out, nil
}

func ref(to string) object { return object{"$ref": to} }

func channelObjects(channels []channel) yaml.MapSlice {
	out := yaml.MapSlice{}
	for _, c := range channels {
		messages := yaml.MapSlice{}
		for _, m := range c.messages {
			messages = append(messages, yaml.MapItem{Key: m.name, Value: ref("#/components/messages/" + m.name)})
		}
		o := yaml.MapSlice{
			{Key: "address", Value: c.address},
			{Key: "description", Value: c.words},
			{Key: "messages", Value: messages},
			{Key: "parameters", Value: parameters(c.address)},
			{Key: "x-keryx-publish", Value: names(c.publish)},
			{Key: "x-keryx-subscribe", Value: names(c.subscribe)},
		}
		out = append(out, yaml.MapItem{Key: c.id, Value: o})
	}
	return out
}

func names(roles []events.Role) []string {
	out := make([]string, len(roles))
	for i, r := range roles {
		out[i] = string(r)
	}
	slices.Sort(out)
	return out
}

// operationObjects are what the bus itself does: it receives commands and answers them,
// and sends events, lease changes and orders. What principals say to each other passes by.
func operationObjects(channels []channel) yaml.MapSlice {
	out := yaml.MapSlice{}
	for _, c := range channels {
		if c.action == "" {
			continue
		}
		op := yaml.MapSlice{{Key: "action", Value: c.action}, {Key: "channel", Value: ref("#/channels/" + c.id)}}
		if c.summary != "" {
			op = append(op, yaml.MapItem{Key: "summary", Value: c.summary})
		}
		if c.answer != "" {
			op = append(op, yaml.MapItem{Key: "reply", Value: yaml.MapSlice{
				{Key: "channel", Value: ref("#/channels/" + answersID)},
				{Key: "messages", Value: []any{
					ref("#/channels/" + answersID + "/messages/" + c.answer),
					ref("#/channels/" + answersID + "/messages/" + refusedName),
				}},
			}})
		}
		out = append(out, yaml.MapItem{Key: c.id, Value: op})
	}
	return out
}

func (b builder) components(channels []channel) yaml.MapSlice {
	messages, seen := yaml.MapSlice{}, map[string]bool{}
	for _, c := range channels {
		for _, m := range c.messages {
			if seen[m.name] {
				continue
			}
			seen[m.name] = true
			messages = append(messages, yaml.MapItem{Key: m.name, Value: m.object()})
		}
	}
	return yaml.MapSlice{
		{Key: "messages", Value: messages},
		{Key: "schemas", Value: yaml.MapSlice{
			{Key: "eventHeaders", Value: cloudEventHeaders(eventAttributes)},
			{Key: "commandHeaders", Value: cloudEventHeaders(commandAttributes)},
			{Key: "error", Value: b.structure(reflect.TypeFor[events.Error]())},
			{Key: "lease", Value: b.structure(reflect.TypeFor[events.LeaseRecord]())},
			{Key: "ttyFrame", Value: b.structure(reflect.TypeFor[events.TTYFrame]())},
			{Key: "ttyAnswer", Value: b.structure(reflect.TypeFor[events.TTYAnswer]())},
		}},
		{Key: "securitySchemes", Value: object{"nkey": object{
			"type": "asymmetricEncryption", "description": "An NKey of NATS that `bus user add` has made: the server's nonce is signed with it.",
		}}},
	}
}
