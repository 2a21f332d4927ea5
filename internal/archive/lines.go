package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"keryx/events"
)

// decode reads a body that has to be written as MarshalData writes it.
func decode[T any](body []byte) (T, error) {
	var out T
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		return out, fmt.Errorf("%w: %w", ErrForm, err)
	}
	again, err := events.MarshalData(out)
	if err != nil || !bytes.Equal(again, body) {
		return out, fmt.Errorf("%w: it is not written as an export writes it", ErrForm)
	}
	return out, nil
}

func (p *Parser) takeHeader(body []byte) error {
	// The version decides how the rest is read.
	var v struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(body, &v); err != nil || v.Format != format || v.Version < 1 {
		return fmt.Errorf("%w: it is no header of the format %s", ErrForm, format)
	}
	if v.Version > Version {
		return fmt.Errorf("%w %d; this bus reads up to version %d", ErrVersion, v.Version, Version)
	}
	h, err := decode[Header](body)
	if err != nil {
		return err
	}
	if !events.IsULID(string(h.Session)) || h.Profile.Validate() != nil {
		return fmt.Errorf("%w: the header names no session", ErrForm)
	}
	if h.Events < 1 || h.Chunks < 0 || h.First.Ordinal < 1 || h.First.Sequence < 1 {
		return fmt.Errorf("%w: the header says that there is nothing in the file", ErrForm)
	}
	p.header = h
	return nil
}

func (p *Parser) takeRaw(body []byte) (Item, error) {
	r, err := decode[Raw](body)
	if err != nil {
		return Item{}, err
	}
	for name, values := range r.Header {
		if !headerFits(name, values) {
			return Item{}, fmt.Errorf("%w: no message has a header %q", ErrForm, name)
		}
	}
	m := &Message{Place: r.Place, Header: r.Header, Data: r.Data, Broken: true}
	return Item{Message: m}, p.before(m.Place)
}

// headerFits refuses headers that the server would act upon, or could not carry.
func headerFits(name string, values []string) bool {
	if name == "" || strings.HasPrefix(strings.ToLower(name), "nats-") || strings.HasPrefix(strings.ToLower(name), "keryx-") ||
		strings.ContainsAny(name, ":\r\n \t") {
		return false
	}
	for _, v := range values {
		if strings.ContainsAny(v, "\r\n") {
			return false
		}
	}
	return len(values) > 0
}

func (p *Parser) takeChunk(body []byte) (Item, error) {
	c, err := decode[Chunk](body)
	if err != nil {
		return Item{}, err
	}
	switch {
	case !events.IsULID(string(c.Exec)) || c.Number < 1 || c.Offset < 0 || len(c.Data) > events.MaxChunk || !streamFits(c.Stream):
		return Item{}, fmt.Errorf("%w: no exec has such a chunk", ErrForm)
	case c.Exec < p.chunk.Exec, c.Exec == p.chunk.Exec && c.Number <= p.chunk.Number:
		return Item{}, fmt.Errorf("%w: chunk %d of %s after chunk %d of %s", ErrOrder, c.Number, c.Exec, p.chunk.Number, p.chunk.Exec)
	}
	p.chunks++
	p.chunk = Chunk{Exec: c.Exec, Number: c.Number}
	return Item{Chunk: &c}, nil
}

func streamFits(s string) bool {
	return s != "" && len(s) <= 32 && !strings.ContainsFunc(s, func(r rune) bool { return r < 'a' || r > 'z' })
}

func (p *Parser) takeEnd(body []byte) error {
	e, err := decode[end](body)
	if err != nil {
		return err
	}
	h := p.header
	if want := (end{p.events, p.chunks, p.content}); e != want || h.Events != p.events || h.Chunks != p.chunks || h.Content != p.content || h.Last != p.last {
		return fmt.Errorf("%w: there are %d events and %d chunks, the header says %d and %d", ErrChain, p.events, p.chunks, h.Events, h.Chunks)
	}
	return nil
}

func sequenceOf(e events.Event) (events.Sequence, error) {
	text, _ := e.Extensions()[events.ExtSequence].(string)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, errors.Join(ErrForm, fmt.Errorf("the event's sequence is %q", text))
	}
	return events.Sequence(n), nil
}
