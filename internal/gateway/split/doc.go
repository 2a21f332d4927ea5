// Package split cuts a text into parts that a chat platform takes.
//
// # Model
//
// A platform counts in a unit of its own, after it has escaped what it was given: so a
// part's length is measured on what is sent, not on what was written. A part ends at the
// best place that fits: behind a paragraph, a line, a word, and inside a word only if
// nothing else will do; never inside a grapheme cluster unless one alone is too long, and
// never inside a code point. A fence of code that is cut is closed at the end of a part
// and opened again, with its language, at the beginning of the next.
//
// # Guaranteed
//
// No part is longer than the limit. [Join] of the parts is the text, byte for byte. The
// same text and limit always give the same parts.
//
// It is pure: no I/O, no clock, no goroutine.
package split
