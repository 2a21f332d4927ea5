package events

import (
	"errors"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

// attribute is a context attribute in its canonical text form.
type attribute struct {
	name, value string
	bare        bool // the JSON format writes it without quotes: Boolean or Integer
}

// coreNames are the attributes that CloudEvents itself defines, required ones first.
var coreNames = [...]string{"specversion", "id", "source", "type", "time", "subject", "datacontenttype", "dataschema"}

const requiredNames = 4 // of coreNames

// attributes returns every set attribute of e, the required ones first, or an invalid
// error naming one that cannot be carried.
func attributes(e Event) ([]attribute, error) {
	c, ok := e.Context.(*cloudevent.EventContextV1)
	if !ok {
		return nil, attributeError(CodeInvalid, "specversion", "%q is not %s", e.SpecVersion(), cloudevent.CloudEventsVersionV1)
	}
	for field, err := range e.FieldErrors { // a setter refused the value and dropped it
		return nil, attributeError(CodeInvalid, strings.TrimPrefix(field, "extension:"), "%v", err)
	}
	out := make([]attribute, 0, len(coreNames)+len(c.Extensions))
	out = append(out, coreAttributes(c)...)
	for name, v := range c.Extensions {
		if slices.Contains(coreNames[:], name) {
			return nil, attributeError(CodeInvalid, name, "the name is taken by CloudEvents")
		}
		value, bare, err := formatValue(v)
		if err != nil {
			return nil, attributeError(CodeInvalid, name, "%v", err)
		}
		out = append(out, attribute{name, value, bare})
	}
	for _, a := range out {
		if err := checkAttribute(a.name, a.value); err != nil {
			return nil, attributeError(CodeInvalid, a.name, "%v", err)
		}
	}
	return out, nil
}

// coreAttributes returns the attributes of CloudEvents itself that are set, unchecked.
func coreAttributes(c *cloudevent.EventContextV1) []attribute {
	out := []attribute{
		{name: "specversion", value: cloudevent.CloudEventsVersionV1},
		{name: "id", value: c.ID},
		{name: "source", value: c.Source.String()},
		{name: "type", value: c.Type},
	}
	if c.Time != nil {
		out = append(out, attribute{name: "time", value: types.FormatTime(c.Time.Time)})
	}
	if c.Subject != nil {
		out = append(out, attribute{name: "subject", value: *c.Subject})
	}
	if c.DataContentType != nil {
		out = append(out, attribute{name: "datacontenttype", value: *c.DataContentType})
	}
	if c.DataSchema != nil {
		out = append(out, attribute{name: "dataschema", value: c.DataSchema.String()})
	}
	return out
}

// formatValue returns the canonical text of an extension's value.
func formatValue(v any) (text string, bare bool, err error) {
	switch v := v.(type) {
	case string:
		return v, false, nil
	case bool:
		return strconv.FormatBool(v), true, nil
	case float32, float64: // the SDK would cut it to an integer
		return "", false, errors.New("a number must be an integer of 32 bits")
	}
	v, err = types.Validate(v)
	if err != nil {
		return "", false, err
	}
	if t, ok := v.(types.Timestamp); ok {
		if _, err := parseTime(types.FormatTime(t.Time)); err != nil {
			return "", false, err
		}
	}
	_, bare = v.(int32)
	text, err = types.Format(v)
	return text, bare, err
}

func attributeError(c Code, name, format string, args ...any) *Error {
	return &Error{Code: c, Path: name, Message: "attribute " + name + ": " + fmt.Sprintf(format, args...)}
}

// checkAttribute returns an error unless name and value are within the rules of
// CloudEvents, those of the attributes it defines included.
func checkAttribute(name, value string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := checkValue(value); err != nil {
		return err
	}
	if slices.Contains(coreNames[:], name) && isBlank(value) {
		return errEmpty
	}
	var err error
	switch name {
	case "source":
		_, err = parseURI(value)
	case "dataschema":
		_, err = parseAbsoluteURI(value)
	case "time":
		_, err = parseTime(value)
	case "datacontenttype":
		err = checkMediaType(value)
	}
	return err
}

var errEmpty = errors.New("the value is empty")

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// checkName returns an error unless name is lower-case letters and digits.
func checkName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9') {
			return errors.New("a name has only a-z and 0-9")
		}
	}
	if name == "data" {
		return errors.New("the name is taken by the payload")
	}
	return nil
}

// checkValue returns an error for what no attribute may hold: control characters,
// non-characters and broken UTF-8.
func checkValue(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("the value is not UTF-8")
	}
	for _, r := range s {
		if r < 0x20 || 0x7f <= r && r <= 0x9f || 0xfdd0 <= r && r <= 0xfdef || r&0xfffe == 0xfffe {
			return fmt.Errorf("the value holds U+%04X", r)
		}
	}
	return nil
}

// parseURI reads a URI reference so that its String is the text as it came. The
// library's own would change the spelling of letters beyond ASCII, of a scheme in
// capitals, and of an empty fragment.
func parseURI(s string) (url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return url.URL{}, fmt.Errorf("%q is not a URI reference", s)
	}
	switch {
	case u.String() == s:
		return *u, nil
	case u.Scheme != "":
		return url.URL{Scheme: s[:len(u.Scheme)], Opaque: s[len(u.Scheme)+1:]}, nil
	}
	return url.URL{Opaque: s}, nil
}

func parseAbsoluteURI(s string) (url.URL, error) {
	u, err := parseURI(s)
	if err != nil || !u.IsAbs() {
		return url.URL{}, fmt.Errorf("%q is not an absolute URI", s)
	}
	return u, nil
}

// parseTime reads a timestamp strictly as RFC 3339 and returns it in UTC, whose year
// must have a form of four digits too.
func parseTime(s string) (time.Time, error) {
	s = strings.ToUpper(s) // "t" and "z" are allowed
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || !hasShape(s, "dddd-dd-ddTdd:dd:dd") || strings.Contains(s, ",") {
		return time.Time{}, fmt.Errorf("%q is not a time of RFC 3339", s)
	}
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return time.Time{}, fmt.Errorf("%q is beyond the years 0 to 9999 in UTC", s)
	}
	return t, nil
}

// hasShape reports whether s begins like shape, in which d stands for a digit. The
// time package also takes hours of one digit.
func hasShape(s, shape string) bool {
	if len(s) < len(shape) {
		return false
	}
	for i := range len(shape) {
		isDigit := '0' <= s[i] && s[i] <= '9'
		if shape[i] == 'd' && !isDigit || shape[i] != 'd' && s[i] != shape[i] {
			return false
		}
	}
	return true
}

func checkMediaType(s string) error {
	if s == mediaJSON {
		return nil
	}
	if _, _, err := mime.ParseMediaType(s); err != nil {
		return fmt.Errorf("%q is not a media type", s)
	}
	return nil
}
