package events

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// errEncoding is what is wrong with a header value; codec errors name the attribute.
var errEncoding = errors.New("malformed header value")

const upperHex = "0123456789ABCDEF"

// percentEncode encodes a value for a header as the CloudEvents NATS binding says:
// space, double quote, percent and everything outside U+0021-U+007E become %XX of
// their UTF-8 bytes.
func percentEncode(s string) string {
	plain := true
	for i := range len(s) {
		if !isPlain(s[i]) {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := range len(s) {
		c := s[i]
		if isPlain(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

func isPlain(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '%' }

// percentDecode undoes a quoted-string (RFC 7230), then one round of percent-encoding.
// Escapes that were not needed are taken; a broken escape or bytes that are not UTF-8
// are refused.
func percentDecode(s string) (string, error) {
	s, err := unquote(s)
	if err != nil {
		return "", err
	}
	if strings.IndexByte(s, '%') >= 0 {
		if s, err = unescape(s); err != nil {
			return "", err
		}
	}
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("bytes that are not UTF-8: %w", errEncoding)
	}
	return s, nil
}

func unescape(s string) (string, error) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("an escape cut short: %w", errEncoding)
		}
		hi, okHi := unhex(s[i+1])
		lo, okLo := unhex(s[i+2])
		if !okHi || !okLo {
			return "", fmt.Errorf("%q is no escape: %w", s[i:i+3], errEncoding)
		}
		b = append(b, hi<<4|lo)
		i += 2
	}
	return string(b), nil
}

// unquote removes the quotes and quoted pairs of a quoted-string; other values are
// returned as they are.
func unquote(s string) (string, error) {
	if len(s) == 0 || s[0] != '"' {
		return s, nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			if i != len(s)-1 {
				return "", fmt.Errorf("text after a quoted string: %w", errEncoding)
			}
			return b.String(), nil
		case '\\':
			i++
			if i == len(s) {
				return "", fmt.Errorf("a quoted string without an end: %w", errEncoding)
			}
		}
		b.WriteByte(s[i])
	}
	return "", fmt.Errorf("a quoted string without an end: %w", errEncoding)
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
