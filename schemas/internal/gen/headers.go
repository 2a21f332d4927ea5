package main

import "keryx/events"

// attributeWords is one CloudEvents attribute of a message: what it means, and
// whether it is always there.
type attributeWords struct {
	name, words string
	always      bool
}

var eventAttributes = []attributeWords{
	{"specversion", "1.0", true},
	{"id", "A ULID.", true},
	{"source", "/profiles/<profile>/principals/<principal> of the caller, or of the authority.", true},
	{"type", "The name of the message.", true},
	{"subject", "The scope: a session's id, or _profile.", true},
	{"time", "RFC 3339, by the authority; never less than that of the event before in its scope.", true},
	{"dataschema", "urn:keryx:schema:<type>", true},
	{"datacontenttype", "application/json", true},
	{"ordinal", "The place in the scope, from 1, without gaps, over all epochs.", true},
	{"epoch", "The epoch of the session that the event belongs to.", false},
	{"turnid", "The turn that the event belongs to.", false},
	{"causationid", "The id of the command that caused the event.", false},
	{"correlationid", "As the command had it.", false},
	{"traceparent", "As the command had it; W3C trace context.", false},
	{"tracestate", "As the command had it; W3C trace context.", false},
	{"sessionfence", "The right to the session under which it was done.", false},
	{"leasefence", "The right to the target under which it was done.", false},
	{"reportedtime", "The sender's own clock.", false},
	{"actingfor", "For whom a gateway acted.", false},
}

var commandAttributes = []attributeWords{
	{"specversion", "1.0", true},
	{"id", "A ULID. The same command sent again has the same id and gets the first answer.", true},
	{"source", "/profiles/<profile>/principals/<principal> of the caller.", true},
	{"type", "The name of the message.", true},
	{"time", "RFC 3339, the caller's own clock.", false},
	{"dataschema", "urn:keryx:schema:<type>", false},
	{"datacontenttype", "application/json", false},
	{"correlationid", "Goes into the events that the command causes.", false},
	{"traceparent", "Goes into the events that the command causes; W3C trace context.", false},
	{"tracestate", "Goes into the events that the command causes; W3C trace context.", false},
	{"actingfor", "For whom a gateway acts.", false},
}

// cloudEventHeaders are the headers of the binary mode of the CloudEvents NATS binding.
func cloudEventHeaders(attributes []attributeWords) object {
	properties, required := object{}, []string{}
	for _, a := range attributes {
		properties["ce-"+a.name] = object{"type": "string", "description": a.words}
		if a.always {
			required = append(required, "ce-"+a.name)
		}
	}
	return object{"type": "object", "required": required, "properties": properties, "description": "CloudEvents 1.0 in the binary mode of the NATS binding: values are percent-encoded."}
}

func statusHeaders(status string) object {
	return object{
		"type": "object", "required": []string{events.HeaderStatus},
		"properties": object{events.HeaderStatus: object{"type": "string", "const": status}},
	}
}

func chunkHeaders() object {
	text := func(words string) object { return object{"type": "string", "description": words} }
	return object{
		"type": "object", "required": []string{events.HeaderStream, events.HeaderOffset, events.HeaderChunk},
		"properties": object{
			events.HeaderStream: object{"type": "string", "enum": []string{"stdout", "stderr", "pty"}, "description": "Which stream the chunk is of."},
			events.HeaderOffset: text("Where in the stream the chunk begins, in bytes."),
			events.HeaderChunk:  text("Numbers the chunks of an exec over all its streams, from 1."),
			events.HeaderTime:   text("When the first byte was read, in microseconds of the Unix epoch, by the executor's clock."),
			events.HeaderSize:   text("The size of the terminal when the first byte was read, as ROWSxCOLS."),
		},
	}
}
