package execution

import (
	"sync"
	"time"

	"keryx/internal/process"
	"keryx/internal/redact"
)

// releaseAfter is how long a terminal may be silent with something held back that could be
// the beginning of a secret: it may be a prompt. Nobody waits so at a pipe.
const releaseAfter = time.Second

// veil takes registered secrets out of a command's output before it is spooled: what is
// not in the spool is on no bus. It is called by one reader; mu is for the release.
type veil struct {
	secrets  *redact.File // nil for none
	terminal bool
	sink     func(process.Stream, []byte)

	mu      sync.Mutex
	streams [process.NumStreams]redact.Stream
	hidden  [process.NumStreams]int64
	release *time.Timer // nil unless something is to be released
	ended   bool
}

func newVeil(secrets *redact.File, terminal bool, sink func(process.Stream, []byte)) *veil {
	return &veil{secrets: secrets, terminal: terminal, sink: sink}
}

// write takes output.
func (v *veil) write(s process.Stream, b []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	set := v.secrets.Current()
	if set.Empty() && !v.streams[s].Holds() {
		v.sink(s, b)
		return
	}
	v.hand(s)(v.streams[s].Write(set, b))
	if v.terminal && v.streams[s].Holds() {
		v.releaseSoon(s)
	}
}

// hand gives on what may be seen. It needs mu held, as what it returns does.
func (v *veil) hand(s process.Stream) func([]byte, int) {
	return func(b []byte, hidden int) {
		v.hidden[s] += int64(hidden)
		if len(b) > 0 {
			v.sink(s, b)
		}
	}
}

// releaseSoon needs mu held.
func (v *veil) releaseSoon(s process.Stream) {
	if v.release != nil {
		v.release.Stop()
	}
	v.release = time.AfterFunc(releaseAfter, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if !v.ended {
			v.hand(s)(v.streams[s].Release(), 0)
		}
	})
}

// end gives on what is still held back: no more output comes.
func (v *veil) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	if v.release != nil {
		v.release.Stop()
	}
	for s := range v.streams {
		v.hand(process.Stream(s))(v.streams[s].Flush(v.secrets.Current()))
	}
}

// count returns how many secrets were taken out of a stream.
func (v *veil) count(s string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, n := range v.hidden {
		if process.Stream(i).String() == s {
			return n
		}
	}
	return 0
}
