package split

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Unit is what a platform counts.
type Unit string

// What platforms count.
const (
	Bytes  Unit = "bytes"  // of UTF-8
	Runes  Unit = "runes"  // Unicode code points
	UTF16  Unit = "utf16"  // UTF-16 code units
	minMax      = 64       // below it a fence and its language leave no room
	maxMax      = 64 << 20 // above it nothing is ever cut
)

// Limit is what one message of a platform can hold.
type Limit struct {
	// Max is the greatest length, in Unit, after Escape.
	Max  int
	Unit Unit
	// Escape is what the text is sent as; nil for as it is. It has to work on each piece
	// by itself: the escaped form of two pieces is that of each, joined.
	Escape func(string) string
}

// ErrBadLimit is wrapped by every error about a limit.
var ErrBadLimit = errors.New("malformed limit")

// Validate returns an error wrapping [ErrBadLimit] unless parts can be cut to l.
func (l Limit) Validate() error {
	if l.Max < minMax || l.Max > maxMax {
		return fmt.Errorf("max %d is not from %d to %d: %w", l.Max, minMax, maxMax, ErrBadLimit)
	}
	switch l.Unit {
	case Bytes, Runes, UTF16:
		return nil
	}
	return fmt.Errorf("unit %q is not one of %s, %s, %s: %w", l.Unit, Bytes, Runes, UTF16, ErrBadLimit)
}

// Length is how long s is once it is sent.
func (l Limit) Length(s string) int {
	if l.Escape != nil {
		s = l.Escape(s)
	}
	return l.count(s)
}

func (l Limit) count(s string) int {
	switch l.Unit {
	case Bytes:
		return len(s)
	case Runes:
		return utf8.RuneCountInString(s)
	}
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF { // a surrogate pair
			n++
		}
	}
	return n
}
