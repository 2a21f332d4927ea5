package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"keryx/events"
)

// Rules take out of JSON what is or looks secret. The zero value has no registered secrets.
type Rules struct {
	Secrets *Set
}

// Mode implements the filters' Mode.
func (Rules) Mode() events.Redaction { return events.RedactRules }

// written are ways in which credentials stand in texts; the first group stays.
var written = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+(?:@)`),
	regexp.MustCompile(`(?i)((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)["']?\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s"',;&]+)`),
}

// Text returns a text with masks in it.
func (r Rules) Text(s string) string {
	b, _ := r.Secrets.Bytes([]byte(s))
	s = string(b)
	for i, w := range written {
		to := "${1}" + Mask
		if i == 1 {
			to += "@"
		}
		s = w.ReplaceAllString(s, to)
	}
	return s
}

// words are those of names whose values are secret; pairs are two in a row.
var (
	words = map[string]bool{
		"password": true, "passwd": true, "passphrase": true, "secret": true, "token": true, "apikey": true,
		"authorization": true, "cookie": true, "credential": true, "credentials": true,
	}
	pairs = map[string]bool{"api key": true, "access key": true, "private key": true, "session key": false}
)

// SecretName reports whether a name says that its value is secret: API_TOKEN, password,
// --access-key.
func SecretName(name string) bool {
	parts := strings.FieldsFunc(camel(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, p := range parts {
		if words[p] || i > 0 && pairs[parts[i-1]+" "+p] {
			return true
		}
	}
	return false
}

// camel puts a space before each capital that follows a small letter, and makes all small.
func camel(name string) string {
	var b strings.Builder
	small := false
	for _, r := range name {
		if unicode.IsUpper(r) && small {
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// JSON returns a JSON text without what is secret; what is not changed stays byte for byte.
// What is no JSON is taken as text.
func (r Rules) JSON(b []byte) []byte {
	out, err := rewrite(b, r.value)
	if err != nil {
		return []byte(r.Text(string(b)))
	}
	return out
}

// value says what becomes of a single value below a path of names.
func (r Rules) value(at place, token json.Token) (json.Token, bool) {
	text, isText := token.(string)
	if at.secret() && token != nil && text != Mask {
		return Mask, true
	}
	if !isText {
		return nil, false
	}
	if at.name() == "stdin" || at.name() == "data_base64" {
		return r.encoded(text)
	}
	masked := r.Text(text)
	return masked, masked != text
}

// encoded looks into bytes in base64.
func (r Rules) encoded(text string) (json.Token, bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Mask, true
	}
	masked := r.Text(string(b))
	return base64.StdEncoding.EncodeToString([]byte(masked)), masked != string(b)
}

// place is where a value stands: the names of the objects around it.
type place struct {
	names []string
	flag  bool // it is the argument behind one that announces a secret
}

func (p place) name() string {
	if len(p.names) == 0 {
		return ""
	}
	return p.names[len(p.names)-1]
}

func (p place) secret() bool {
	if p.flag {
		return true
	}
	for _, n := range p.names {
		if SecretName(n) {
			return true
		}
	}
	return false
}

// decide says what a value becomes; ok is false for one that stays.
type decide func(at place, token json.Token) (to json.Token, ok bool)

// rewrite walks over JSON and puts other values where decide says so.
func rewrite(b []byte, d decide) ([]byte, error) {
	w := &walk{in: b, dec: json.NewDecoder(bytes.NewReader(b)), decide: d}
	w.dec.UseNumber()
	if err := w.value(place{}); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	if rest := bytes.TrimSpace(b[w.dec.InputOffset():]); len(rest) > 0 {
		return nil, fmt.Errorf("redact: %d bytes stand behind the value", len(rest))
	}
	return append(w.out, b[w.copied:]...), nil
}

type walk struct {
	in     []byte
	dec    *json.Decoder
	decide decide
	out    []byte
	copied int // how much of in is in out
}

func (w *walk) value(at place) error {
	before := int(w.dec.InputOffset())
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return w.object(at)
	case json.Delim('['):
		return w.array(at)
	}
	to, ok := w.decide(at, token)
	if !ok {
		return nil
	}
	enc, err := events.MarshalData(to)
	if err != nil {
		return err
	}
	after := int(w.dec.InputOffset())
	begin := before + len(w.in[before:after]) - len(bytes.TrimLeft(w.in[before:after], " \t\r\n:,"))
	w.out = append(append(w.out, w.in[w.copied:begin]...), enc...)
	w.copied = after
	return nil
}

func (w *walk) object(at place) error {
	for w.dec.More() {
		name, err := w.dec.Token()
		if err != nil {
			return err
		}
		text, _ := name.(string)
		if err := w.value(place{names: append(at.names[:len(at.names):len(at.names)], text), flag: at.flag}); err != nil {
			return err
		}
	}
	_, err := w.dec.Token()
	return err
}

// array also looks at a value behind an option that announces it: ["--token", "x"].
func (w *walk) array(at place) error {
	announced := false
	for w.dec.More() {
		from := w.dec.InputOffset()
		if err := w.value(place{names: at.names, flag: at.flag || announced}); err != nil {
			return err
		}
		element := strings.Trim(string(w.in[from:w.dec.InputOffset()]), " \t\r\n,")
		option, isText := strings.CutPrefix(strings.Trim(element, `"`), "-")
		announced = isText && !strings.Contains(option, "=") && SecretName(option)
	}
	_, err := w.dec.Token()
	return err
}
