package redact

// Stream takes secrets out of output that comes in pieces. Its zero value is ready; it is
// not safe for concurrent use. The set may be another at each call.
type Stream struct {
	held []byte // what may be the beginning of a secret
	// How much of held has been given out already, and how much of it is covered by a mask
	// that was.
	given, masked int
}

// Write takes a piece and returns what can be given out, and how many secrets were taken
// out of it. What is returned is the caller's.
func (s *Stream) Write(set *Set, b []byte) (out []byte, hidden int) {
	s.held = append(s.held, b...)
	return s.take(set, false)
}

// Flush returns the rest at the end of the output.
func (s *Stream) Flush(set *Set) (out []byte, hidden int) { return s.take(set, true) }

// Holds reports whether something is held back that was not given out.
func (s *Stream) Holds() bool { return len(s.held) > max(s.given, s.masked) }

// Release gives out what is held back, for somebody who waits for it, such as at a prompt.
// If it was the beginning of a secret, then of that secret only the rest is hidden.
func (s *Stream) Release() []byte {
	from := max(s.given, s.masked)
	if from >= len(s.held) {
		return nil
	}
	s.given = len(s.held)
	return append([]byte(nil), s.held[from:]...)
}

func (s *Stream) take(set *Set, last bool) (out []byte, hidden int) {
	b, i := s.held, 0
	for i < len(b) {
		next := len(b)
		if !set.Empty() {
			next = set.next(b, i)
		}
		if from := max(i, s.given, s.masked); from < next {
			out = append(out, b[from:next]...)
		}
		if i = next; i == len(b) {
			break
		}
		length, partial := set.at(b[i:])
		if partial && !last {
			break
		}
		if length > 0 {
			if hidden++; i >= s.masked {
				out = append(out, Mask...)
			}
			s.masked = max(s.masked, i+length)
		}
		if i >= max(s.given, s.masked) {
			out = append(out, b[i])
		}
		i++
	}
	s.held = append(s.held[:0:0], b[i:]...)
	s.given, s.masked = max(0, s.given-i), max(0, s.masked-i)
	return out, hidden
}
