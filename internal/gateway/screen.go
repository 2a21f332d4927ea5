package gateway

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"keryx/internal/termtext"
)

// editor is the part of x/term's Terminal that a screen draws on: Write prints above
// the prompt and draws the prompt again.
type editor interface {
	io.Writer
	SetPrompt(prompt string)
}

// screen prints above the prompt line by line. What a reply has of its last line so far
// is shown in the prompt, so that the editor always knows where the cursor is.
type screen struct {
	mu    sync.Mutex
	ed    editor
	width int
	color bool
	// filter makes replies safe; it writes into tail.
	filter *termtext.Filter
	tail   strings.Builder // an unfinished line
	style  string          // colors that are set at the end of what was printed
	state  State
	err    error // the first failure to write
}

func newScreen(ed editor, width int, color bool) *screen {
	s := &screen{ed: ed, width: width, color: color}
	s.filter = termtext.NewFilter(&s.tail)
	return s
}

var sgrPattern = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// maxStyle bounds the color sequences that are set again after the prompt was drawn.
const maxStyle = 256

// reply adds to the running reply.
func (s *screen) reply(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.filter.Write([]byte(text))
	s.fail(err)
	s.draw(s.finished())
}

// endReply finishes the running reply's last line.
func (s *screen) endReply() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(s.filter.Flush())
	if sgrPattern.ReplaceAllString(s.tail.String(), "") != "" {
		s.tail.WriteByte('\n')
	}
	lines := s.finished()
	s.tail.Reset()
	s.style = ""
	s.draw(lines)
}

// finished takes the finished lines out of tail. Colors that are still set at their end
// are taken back, since the prompt follows, and set again before the next lines.
func (s *screen) finished() string {
	text := s.tail.String()
	i := strings.LastIndexByte(text, '\n')
	if i < 0 {
		return ""
	}
	done, rest := text[:i+1], text[i+1:]
	s.tail.Reset()
	s.tail.WriteString(rest)
	before := s.style
	for _, seq := range sgrPattern.FindAllString(done, -1) {
		if seq == "\x1b[m" || seq == "\x1b[0m" || len(s.style) > maxStyle {
			s.style = ""
			continue
		}
		s.style += seq
	}
	if s.style != "" {
		done += "\x1b[0m"
	}
	return before + done
}

// line prints one line of our own, whatever it holds.
func (s *screen) line(color, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for part := range strings.SplitSeq(text, "\n") {
		part = termtext.Visible(part)
		if s.color && color != "" {
			part = color + part + "\x1b[0m"
		}
		b.WriteString(part + "\n")
	}
	s.draw(b.String())
}

func (s *screen) setState(st State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st != s.state {
		s.state = st
		s.draw("")
	}
}

func (s *screen) resize(width int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width = width
}

// draw prints text above the prompt and draws the prompt as it is now.
func (s *screen) draw(text string) {
	s.ed.SetPrompt(s.prompt())
	_, err := s.ed.Write([]byte(text))
	s.fail(err)
}

func (s *screen) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// failure returns why printing failed, if it did.
func (s *screen) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return fmt.Errorf("write terminal: %w", s.err)
	}
	return nil
}

// prompt shows the reply's unfinished line and the session's state.
func (s *screen) prompt() string {
	mark := stateMark(s.state) + "> "
	tail := termtext.Visible(sgrPattern.ReplaceAllString(s.tail.String(), ""))
	if tail == "" {
		return mark
	}
	room := s.width/2 - termtext.Width(mark)
	if room < 8 {
		return mark
	}
	return termtext.Cut(tail, room) + " " + mark
}

func stateMark(st State) string {
	switch st.Activity {
	case Idle, "":
		return ""
	case Running:
		return "[running " + st.For.Round(time.Second).String() + "] "
	}
	return "[" + string(st.Activity) + "] "
}
