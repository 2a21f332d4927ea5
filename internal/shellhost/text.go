package shellhost

import "unicode/utf8"

// decoder makes text of the bytes of one stream, which come in pieces: a character
// split over two is kept back until its rest comes, and each byte that belongs to none
// becomes U+FFFD. The zero value is ready.
type decoder struct {
	kept []byte // the beginning of a character
}

// text returns the text that b completes.
func (d *decoder) text(b []byte) string {
	if len(d.kept) > 0 {
		b = append(d.kept, b...)
		d.kept = nil
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 && !utf8.FullRune(b) {
			d.kept = append([]byte(nil), b...)
			break
		}
		out = utf8.AppendRune(out, r)
		b = b[n:]
	}
	return string(out)
}

// rest returns what was kept back, at the end of the stream.
func (d *decoder) rest() string {
	out := make([]byte, 0, len(d.kept))
	for range d.kept {
		out = utf8.AppendRune(out, utf8.RuneError)
	}
	d.kept = nil
	return string(out)
}
