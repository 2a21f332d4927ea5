package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"keryx/client"
	"keryx/events"
)

const (
	headerKey = "Idempotency-Key"
	mediaJSON = "application/json"
	// maxKey keeps a key and its token's name within what the bus takes.
	maxKey = 512
)

// fields are the top members of a JSON object, as they came.
type fields map[string]json.RawMessage

// command sends the route's command and answers with its answer.
func (c *call) command() error {
	data, err := c.data()
	if err != nil {
		return err
	}
	return c.send(data)
}

// send sends the route's command with this data. A repeat of the request with the same
// idempotency key is the same command, and gets the first answer.
func (c *call) send(data fields) error {
	ctx := c.ctx()
	key, err := c.key()
	if err != nil {
		return err
	}
	if key != "" {
		ctx = client.WithCommandID(ctx, c.commandID(key))
	}
	var answer json.RawMessage
	if err := c.conn.Do(ctx, c.route.command, data.raw(), &answer); err != nil {
		return err
	}
	return c.answer(answer)
}

// submit sends the key as the message's own: the bus compares the bodies and remembers it
// for a day. The token's name keeps the keys of two tokens apart.
func (c *call) submit() error {
	data, err := c.data()
	if err != nil {
		return err
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	if own, ok := data["idempotency_key"]; ok {
		var text string
		if json.Unmarshal(own, &text) != nil || key != "" && key != text || len(text) > maxKey {
			return invalid("/idempotency_key", "a text of at most %d bytes, the same as the header %s if that is given", maxKey, headerKey)
		}
		key = text
	}
	delete(data, "idempotency_key")
	if key != "" {
		data.setText("idempotency_key", string(c.token.Name)+":"+key)
	}
	var answer json.RawMessage
	if err := c.conn.Do(c.ctx(), c.route.command, data.raw(), &answer); err != nil {
		return err
	}
	return c.answer(answer)
}

func (c *call) key() (string, error) {
	key := c.r.Header.Get(headerKey)
	if len(key) > maxKey {
		return "", invalid(headerKey, "%d bytes are too many, at most %d are taken", len(key), maxKey)
	}
	return key, nil
}

// commandID is the id of the command behind a request with an idempotency key.
func (c *call) commandID(key string) events.CommandID {
	sum := sha256.Sum256([]byte(string(c.token.Name) + "\n" + c.r.Method + " " + c.r.URL.EscapedPath() + "\n" + key))
	return events.CommandID(ulid.ULID(sum[:16]).String())
}

// answer writes what the bus answered, as it came.
func (c *call) answer(body []byte) error {
	h := c.w.Header()
	h.Set("Content-Type", mediaJSON)
	h.Set("Cache-Control", "no-store")
	c.s.writeSoon(c.w)
	_, _ = c.w.Write(body) // a caller that has gone needs no answer
	return nil
}

func (c *call) answerWith(v any) error {
	body, err := events.MarshalData(v)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	return c.answer(body)
}

// data gathers the command's fields from the body, the path and the query.
func (c *call) data() (fields, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	for _, name := range pathFields(c.route.path) {
		if _, twice := data[name]; twice {
			return nil, invalid("/"+name, "the path gives this field")
		}
		data.setText(name, c.r.PathValue(name))
	}
	return data, c.query(data)
}

// body reads the JSON object of a request; none is an empty one.
func (c *call) body() (fields, error) {
	out := make(fields)
	b, err := c.read()
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return out, err
	}
	if c.r.Method == http.MethodGet {
		return nil, invalid("", "a GET has no body")
	}
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || kind != mediaJSON {
		return nil, events.Errorf(events.CodeUndecodable, "the body must be %s, not %q", mediaJSON, c.r.Header.Get("Content-Type"))
	}
	if err := json.Unmarshal(b, &out); err != nil || out == nil {
		return nil, invalid("", "the body is not a JSON object: %v", err)
	}
	return out, nil
}

func (c *call) read() ([]byte, error) {
	b, err := io.ReadAll(c.r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, events.Errorf(events.CodeTooLarge, "the body has more than %d bytes", large.Limit)
	case err != nil:
		return nil, events.Errorf(events.CodeUndecodable, "the body could not be read: %v", err)
	}
	// A stream outlives the time for reading its request.
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) // fails only for what cannot be slow
	return b, nil
}

// query takes the query's fields, in the types of the command's schema.
func (c *call) query(data fields) error {
	known := c.route.params()
	for name, values := range c.r.URL.Query() {
		i := slices.IndexFunc(known, func(p param) bool { return p.name == name })
		if i < 0 {
			return invalid("?"+name, "no such field in the query")
		}
		v, err := typed(known[i].schema, values)
		if err != nil {
			return invalid("?"+name, "%v", err)
		}
		data[name] = v
	}
	return nil
}

// typed is the JSON form of a query's values.
func typed(s schema, values []string) (json.RawMessage, error) {
	if s["type"] != "array" && len(values) != 1 {
		return nil, errors.New("given more than once")
	}
	switch s["type"] {
	case "array":
		return json.Marshal(values)
	case "integer":
		if _, err := strconv.ParseInt(values[0], 10, 64); err != nil {
			if _, err := strconv.ParseUint(values[0], 10, 64); err != nil {
				return nil, fmt.Errorf("%q is not an integer", values[0])
			}
		}
		n := json.Number(values[0])
		return json.Marshal(n)
	case "boolean":
		b, err := strconv.ParseBool(values[0])
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", values[0])
		}
		return json.Marshal(b)
	}
	return json.Marshal(values[0])
}

func (f fields) setText(name, value string) {
	b, err := events.MarshalData(value)
	if err != nil { // a string always has a JSON form
		panic(err)
	}
	f[name] = b
}

// raw is the object, with each member as it came.
func (f fields) raw() events.Raw {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(f)) {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := events.MarshalData(name)
		if err != nil { // a string always has a JSON form
			panic(err)
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(f[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// pathFields are the names in braces of a path.
func pathFields(path string) []string {
	var out []string
	for _, part := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			out = append(out, strings.TrimSuffix(name, "}"))
		}
	}
	return out
}

func invalid(path, format string, args ...any) *events.Error {
	e := events.Errorf(events.CodeInvalid, format, args...)
	e.Path = path
	return e
}
