package exchange

import (
	"keryx/events"
	"keryx/internal/archive"
	"keryx/internal/redact"
)

// Redacted is a filter that takes out what a document of package redact does, and
// registered secrets of output. It is for one export.
type Redacted struct {
	Document redact.Document
	Secrets  *redact.Set

	exec    events.ExecID
	number  uint64
	streams map[string]*redactedStream
}

type redactedStream struct {
	redact.Stream
	last   archive.Chunk
	from   int64 // where the next input begins
	offset int64 // where the next output begins
}

// Event implements Filter.
func (f *Redacted) Event(r events.Record) (events.Record, error) {
	return redact.Record(f.Document, r), nil
}

// Raw implements Filter. Nobody knows what is in what cannot be decoded.
func (f *Redacted) Raw(r archive.Raw) (archive.Raw, error) {
	return archive.Raw{Place: r.Place, Header: map[string][]string{}, Data: []byte(redact.Mask)}, nil
}

// Output implements Filter. A secret may lie over the border of two chunks, so the borders
// move; the strict mode keeps no output.
func (f *Redacted) Output(c archive.Chunk) ([]archive.Chunk, error) {
	if f.Document.Mode() == events.RedactStrict {
		return nil, nil
	}
	if f.Secrets.Empty() {
		return []archive.Chunk{c}, nil
	}
	if f.exec != c.Exec {
		f.exec, f.number, f.streams = c.Exec, 0, make(map[string]*redactedStream)
	}
	s := f.streams[c.Stream]
	if s == nil {
		s = &redactedStream{}
		f.streams[c.Stream] = s
	}
	var out []archive.Chunk
	if c.Offset != s.from { // what is missing in between parts what is before and behind
		rest, _ := s.Flush(f.Secrets)
		out = f.chunks(s, rest)
		s.offset += c.Offset - s.from
	}
	s.last, s.from = c, c.Offset+int64(len(c.Data))
	data, _ := s.Write(f.Secrets, c.Data)
	return append(out, f.chunks(s, data)...), nil
}

// End implements Filter: what was held back of an exec's output comes behind it.
func (f *Redacted) End(exec events.ExecID) []archive.Chunk {
	if f.exec != exec {
		return nil
	}
	var out []archive.Chunk
	for _, name := range []string{"stdout", "stderr", "pty"} {
		if s := f.streams[name]; s != nil {
			rest, _ := s.Flush(f.Secrets)
			out = append(out, f.chunks(s, rest)...)
		}
	}
	f.exec = ""
	return out
}

// chunks cuts output into chunks, numbered anew.
func (f *Redacted) chunks(s *redactedStream, data []byte) []archive.Chunk {
	var out []archive.Chunk
	for len(data) > 0 {
		n := min(len(data), events.MaxChunk)
		f.number++
		c := s.last
		c.Number, c.Offset, c.Data = f.number, s.offset, data[:n]
		out = append(out, c)
		s.offset += int64(n)
		data = data[n:]
	}
	return out
}

// Mode implements Filter.
func (f *Redacted) Mode() events.Redaction { return f.Document.Mode() }
