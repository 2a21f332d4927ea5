package events

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// marshalData encodes a data struct; HTML characters stay as they are.
func marshalData(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// MarshalStructured returns e in the JSON event format: attributes in a fixed order, a
// JSON payload embedded byte for byte, text as a string, other payloads as
// data_base64. Errors are those of [Encode].
func MarshalStructured(e Event) ([]byte, error) {
	as, err := attributes(e)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(as[4:], func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	b.Grow(256 + len(e.DataEncoded))
	for i, a := range as {
		b.WriteByte(",{"[btoi(i == 0)])
		writeString(&b, a.name)
		b.WriteByte(':')
		writeString(&b, a.value)
	}
	writeData(&b, e)
	b.WriteByte('}')
	return b.Bytes(), nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func writeString(b *bytes.Buffer, s string) {
	enc, err := marshalData(s)
	if err != nil { // a string always has a JSON form
		panic(err)
	}
	b.Write(enc)
}

func writeData(b *bytes.Buffer, e Event) {
	data := e.DataEncoded
	switch {
	case len(data) == 0:
	case isJSON(e.DataContentType()) && json.Valid(data):
		b.WriteString(`,"data":`)
		b.Write(data)
	case isText(e.DataContentType()) && utf8.Valid(data):
		b.WriteString(`,"data":`)
		writeString(b, string(data))
	default:
		b.WriteString(`,"data_base64":`)
		writeString(b, base64.StdEncoding.EncodeToString(data))
	}
}

// isJSON reports whether a content type holds JSON; none given means JSON.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json"))
}

func isText(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.HasPrefix(media, "text/")
}

// UnmarshalStructured reads the JSON event format. A JSON payload keeps its bytes.
// Errors are *[Error] with code undecodable, their path naming the attribute.
func UnmarshalStructured(b []byte) (Event, error) {
	members, err := readMembers(b)
	if err != nil {
		return Event{}, &Error{Code: CodeUndecodable, Message: "structured event: " + err.Error()}
	}
	found := make(map[string]string, len(members))
	var data, data64 json.RawMessage
	for _, m := range members {
		switch m.name {
		case "data":
			data = m.value
		case "data_base64":
			data64 = m.value
		default:
			value, present, err := scalar(m.value)
			if err != nil {
				return Event{}, attributeError(CodeUndecodable, m.name, "%v", err)
			}
			if present {
				found[m.name] = value
			}
		}
	}
	e, err := assemble(found)
	if err != nil {
		return Event{}, err
	}
	return e, setData(&e, data, data64)
}

type member struct {
	name  string
	value json.RawMessage
}

// readMembers reads the members of one JSON object; a name given twice is refused.
func readMembers(b []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var out []member
	seen := make(map[string]bool)
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: t.(string)} // the decoder takes only strings as names
		if seen[m.name] {
			return nil, fmt.Errorf("member %q is given twice", m.name)
		}
		seen[m.name] = true
		if err := dec.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("member %q: %w", m.name, err)
		}
		out = append(out, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the object")
	}
	return out, nil
}

// scalar returns the canonical text of an attribute's JSON value; null is absent.
func scalar(raw json.RawMessage) (value string, present bool, err error) {
	switch c := raw[0]; {
	case c == 'n':
		return "", false, nil
	case c == '"':
		err := json.Unmarshal(raw, &value)
		return value, true, err
	case c == 't' || c == 'f':
		return string(raw), true, nil
	case c == '-' || '0' <= c && c <= '9':
		n, err := strconv.ParseInt(string(raw), 10, 32)
		if err != nil {
			return "", false, fmt.Errorf("a number must be an integer of 32 bits, not %s", raw)
		}
		return strconv.FormatInt(n, 10), true, nil
	}
	return "", false, errors.New("an attribute is a string, a boolean or an integer")
}

// setData sets the payload from the members data and data_base64.
func setData(e *Event, data, data64 json.RawMessage) error {
	switch {
	case data != nil && data64 != nil:
		return &Error{Code: CodeUndecodable, Path: "data_base64", Message: "data and data_base64 are both given"}
	case data64 != nil:
		return setBase64(e, data64)
	case data == nil:
		return nil
	case !isJSON(e.DataContentType()) && data[0] == '"':
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return &Error{Code: CodeUndecodable, Path: "data", Message: err.Error()}
		}
		e.DataEncoded = []byte(text)
	default:
		e.DataEncoded = data
	}
	return nil
}

func setBase64(e *Event, raw json.RawMessage) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return &Error{Code: CodeUndecodable, Path: "data_base64", Message: "data_base64 is not a string"}
	}
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return &Error{Code: CodeUndecodable, Path: "data_base64", Message: "data_base64: " + err.Error()}
	}
	e.DataEncoded, e.DataBase64 = body, true
	return nil
}
