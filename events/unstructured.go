package events

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// UnmarshalStructured reads the JSON event format. A JSON payload keeps its bytes; if it
// comes without a content type, that becomes application/json, as the format says. A
// member given twice is refused. The payload is a part of b unless it was escaped. Errors are *[Error] with code undecodable, their path
// naming the attribute.
func UnmarshalStructured(b []byte) (Event, error) {
	members, err := readMembers(b)
	if err != nil {
		return Event{}, &Error{Code: CodeUndecodable, Message: "structured event: " + err.Error()}
	}
	var a assembler
	var data, data64 json.RawMessage
	for _, m := range members {
		switch {
		case m.name == "data":
			data = m.value
		case m.name == "data_base64":
			data64 = m.value
		case m.value[0] == 'n': // null means not set
		default:
			value, err := scalar(m.value)
			if err == nil {
				err = a.put(m.name, value)
			}
			if err != nil {
				return Event{}, attributeError(CodeUndecodable, m.name, "%v", err)
			}
		}
	}
	e, err := a.event()
	if err != nil {
		return Event{}, err
	}
	if path, err := setPayload(&e, data, data64); err != nil {
		return Event{}, &Error{Code: CodeUndecodable, Path: path, Message: path + ": " + err.Error()}
	}
	return e, nil
}

// scalar returns an attribute's JSON value as string, bool or int32.
func scalar(raw json.RawMessage) (any, error) {
	switch c := raw[0]; {
	case c == '"':
		return unquoteJSON(raw)
	case c == 't' || c == 'f':
		return c == 't', nil
	case c == '-' || '0' <= c && c <= '9':
		n, err := strconv.ParseInt(string(raw), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("a number must be an integer of 32 bits, not %s", raw)
		}
		return int32(n), nil
	}
	return nil, errors.New("the value must be a string, a boolean or an integer")
}

// unquoteJSON returns the text of a JSON string. Half a surrogate pair, which the
// decoder would replace without a word, is refused.
func unquoteJSON(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", errors.New("the value must be a string")
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", err
	}
	if hasLoneSurrogate(raw) {
		return "", errors.New("the value holds half a surrogate pair")
	}
	return text, nil
}

// hasLoneSurrogate looks for an escape \uD800 to \uDFFF without its partner in a JSON
// string known to be well formed.
func hasLoneSurrogate(raw []byte) bool {
	high := -2 // where the escape of a first half ended
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		n, err := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16)
		if err != nil {
			return true
		}
		paired := high == i-2
		i += 4
		switch {
		case 0xd800 <= n && n < 0xdc00:
			if high >= 0 {
				return true
			}
			high = i
		case 0xdc00 <= n && n < 0xe000:
			if !paired {
				return true
			}
			high = -2
		}
	}
	return high >= 0
}

// setPayload sets the payload from the members data and data_base64; at most one may be
// given. path is the member that err is about.
func setPayload(e *Event, data, data64 json.RawMessage) (path string, err error) {
	switch {
	case data != nil && data64 != nil:
		return "data_base64", errors.New("data is given too")
	case data64 != nil:
		return "data_base64", setBase64(e, data64)
	case data != nil:
		return "data", setData(e, data)
	}
	return "", nil
}

func setData(e *Event, data json.RawMessage) error {
	kind, isUTF8 := payloadOf(e.DataContentType())
	if kind == payloadJSON {
		e.DataEncoded = data
		if e.DataContentType() == "" {
			return e.Context.SetDataContentType(mediaJSON)
		}
		return nil
	}
	text, err := unquoteJSON(data)
	if err != nil {
		return fmt.Errorf("content of type %s: %w", e.DataContentType(), err)
	}
	if !isUTF8 && !isASCII(text) {
		return fmt.Errorf("content of type %s beyond ASCII must come as data_base64", e.DataContentType())
	}
	e.DataEncoded = []byte(text)
	return nil
}

func setBase64(e *Event, raw json.RawMessage) error {
	text, err := unquoteJSON(raw)
	if err != nil {
		return err
	}
	body, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	e.DataEncoded, e.DataBase64 = body, true
	return nil
}
