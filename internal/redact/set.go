package redact

import (
	"bytes"
	"errors"
	"fmt"
)

// Mask stands where a secret was.
const Mask = "[redacted]"

// Bounds of a registered secret, in bytes. What is shorter stands in too much that is none.
const (
	MinSecret = 6
	MaxSecret = 4096
)

// ErrSecret is wrapped by what [CheckSecret] refuses.
var ErrSecret = errors.New("not fit to be a registered secret")

// CheckSecret returns nil if a value can be registered.
func CheckSecret(value []byte) error {
	switch {
	case len(value) < MinSecret || len(value) > MaxSecret:
		return fmt.Errorf("a value of %d bytes is %w: it has %d to %d", len(value), ErrSecret, MinSecret, MaxSecret)
	case bytes.Contains([]byte(Mask), value):
		return fmt.Errorf("the value is %w: it is in %s, which stands where a secret was", ErrSecret, Mask)
	}
	return nil
}

// Set finds secrets. It does not change and is safe for concurrent use; nil finds nothing.
type Set struct {
	byFirst [256][][]byte
	longest int
	size    int
}

// NewSet returns a set of values. Those with line feeds are also found as a terminal shows
// them. Empty ones are left out.
func NewSet(values ...[]byte) *Set {
	s := &Set{}
	for _, v := range values {
		s.add(v)
		if bytes.IndexByte(v, '\n') >= 0 {
			s.add(bytes.ReplaceAll(v, []byte("\n"), []byte("\r\n")))
		}
	}
	return s
}

func (s *Set) add(v []byte) {
	if len(v) == 0 {
		return
	}
	s.byFirst[v[0]] = append(s.byFirst[v[0]], bytes.Clone(v))
	s.longest = max(s.longest, len(v))
	s.size++
}

// Empty reports whether there is nothing to find.
func (s *Set) Empty() bool { return s == nil || s.size == 0 }

// at returns how long the longest secret is that b begins with, and whether all of b is
// the beginning of a longer one.
func (s *Set) at(b []byte) (length int, partial bool) {
	for _, v := range s.byFirst[b[0]] {
		switch {
		case len(v) <= len(b):
			if bytes.Equal(v, b[:len(v)]) {
				length = max(length, len(v))
			}
		case bytes.HasPrefix(v, b):
			partial = true
		}
	}
	return length, partial
}

// next returns the first place from i on at which a secret can begin.
func (s *Set) next(b []byte, i int) int {
	for i < len(b) && s.byFirst[b[i]] == nil {
		i++
	}
	return i
}

// Bytes returns b with a mask in place of each secret, and how many there were.
func (s *Set) Bytes(b []byte) ([]byte, int) {
	if s.Empty() {
		return b, 0
	}
	var st Stream
	out, n := st.Write(s, b)
	rest, m := st.Flush(s)
	return append(out, rest...), n + m
}
