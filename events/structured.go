package events

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// MarshalData encodes a data struct as JSON. Unlike [json.Marshal] it leaves <, > and & as
// they are: escaped, a reply made of them would be six times as long, and beyond the limit.
func MarshalData(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// MarshalStructured returns e in the JSON event format: attributes in a fixed order, a
// JSON payload embedded byte for byte, text as a string, and every other payload, or one
// that neither form would give back byte for byte, as data_base64. No payload (nil) has
// no member; an empty one has. Errors are those of [Encode].
func MarshalStructured(e Event) ([]byte, error) {
	as, err := attributes(e)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(as[requiredNames:], func(a, b attribute) int { return strings.Compare(a.name, b.name) })
	b := make([]byte, 0, 512+len(e.DataEncoded)+len(e.DataEncoded)/2)
	for i, a := range as {
		b = append(b, ",{"[btoi(i == 0)], '"')
		b = append(b, a.name...) // letters and digits
		b = append(b, '"', ':')
		if a.bare {
			b = append(b, a.value...)
		} else {
			b = appendString(b, a.value)
		}
	}
	return append(appendData(b, e), '}'), nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func appendString(b []byte, s string) []byte {
	if percentEncode(s) == s && strings.IndexByte(s, '\\') < 0 { // nothing to escape
		return append(append(append(b, '"'), s...), '"')
	}
	enc, err := MarshalData(s)
	if err != nil { // a string always has a JSON form
		panic(err)
	}
	return append(b, enc...)
}

func appendData(b []byte, e Event) []byte {
	data := e.DataEncoded
	if data == nil {
		return b
	}
	kind, isUTF8 := payloadOf(e.DataContentType())
	switch {
	case e.DataBase64:
	case kind == payloadJSON && isBareJSON(data):
		b = append(b, `,"data":`...)
		return append(b, data...)
	case kind == payloadText && utf8.Valid(data) && (isUTF8 || isASCII(string(data))):
		b = append(b, `,"data":`...)
		return appendString(b, string(data))
	}
	b = append(b, `,"data_base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

// isBareJSON reports whether data is JSON that a reader finds again byte for byte:
// white space around a value would be lost.
func isBareJSON(data []byte) bool {
	return len(bytes.TrimSpace(data)) == len(data) && utf8.Valid(data) && json.Valid(data)
}
