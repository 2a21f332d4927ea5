package shellhost

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"keryx/events"
)

const (
	// maxReply is the largest reply, in bytes of UTF-8.
	maxReply = events.MaxBody
	// maxEncoded leaves room in an event for the rest of its data: JSON writes some
	// characters with up to six bytes.
	maxEncoded = events.MaxData - 64<<10
)

// reply gathers text and keeps its head and its tail. Memory is bounded.
type reply struct {
	head strings.Builder
	tail []byte // what came after the head; cut from the front
	cut  int64  // bytes given up between the two
}

// add takes text, which is valid UTF-8.
func (r *reply) add(text string) {
	if room := maxReply/2 - r.head.Len(); r.cut == 0 && len(r.tail) == 0 && room > 0 {
		n := runeStart(text, min(room, len(text)))
		r.head.WriteString(text[:n])
		text = text[n:]
	}
	r.tail = append(r.tail, text...)
	if len(r.tail) > 2*maxReply {
		r.keepTail(maxReply)
	}
}

// keepTail cuts the tail to its last n bytes, or fewer, at a character's beginning.
func (r *reply) keepTail(n int) {
	if len(r.tail) <= n {
		return
	}
	from := len(r.tail) - n
	for from < len(r.tail) && !utf8.RuneStart(r.tail[from]) {
		from++
	}
	r.cut += int64(from)
	r.tail = append(r.tail[:0], r.tail[from:]...)
}

// runeStart returns the largest index up to n at which a character begins or text ends.
func runeStart(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// text returns the reply and whether it was cut.
func (r *reply) text() (string, bool) {
	whole := r.head.String() + string(r.tail)
	if r.cut == 0 {
		whole = strings.TrimSuffix(whole, "\n")
		if len(whole) <= maxReply && encoded(whole) <= maxEncoded {
			return whole, false
		}
	}
	head, tail := r.head.String(), strings.TrimSuffix(string(r.tail), "\n")
	for limit := maxReply - 64; ; limit /= 2 { // 64 for the mark
		out := r.shorten(head, tail, limit)
		if encoded(out) <= maxEncoded {
			return out, true
		}
	}
}

// shorten keeps limit/2 bytes of each end and says how much is missing between.
func (r *reply) shorten(head, tail string, limit int) string {
	total := int64(len(head)) + r.cut + int64(len(tail))
	head = head[:runeStart(head, min(limit/2, len(head)))]
	if from := len(tail) - limit/2; from > 0 {
		for from < len(tail) && !utf8.RuneStart(tail[from]) {
			from++
		}
		tail = tail[from:]
	}
	return fmt.Sprintf("%s\n[... %d bytes cut ...]\n%s", head, total-int64(len(head)+len(tail)), tail)
}

// encoded returns the size of text in JSON.
func encoded(text string) int {
	b, err := json.Marshal(text)
	if err != nil {
		return len(text) * 6 // cannot be: every string has a form
	}
	return len(b)
}
