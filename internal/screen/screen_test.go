package screen_test

import (
	"fmt"
	"strings"
	"testing"

	"keryx/internal/screen"
)

func newScreen(t *testing.T, rows, cols int) *screen.Screen {
	t.Helper()
	s := screen.New(rows, cols)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func write(t *testing.T, s *screen.Screen, text string) {
	t.Helper()
	if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
}

var programs = map[string]string{
	"plain lines":           "one\r\ntwo\r\nthree",
	"colours":               "\x1b[1;31mred\x1b[0m plain \x1b[48;5;33mback\x1b[0m\r\n\x1b[4munder",
	"wide characters":       "a漢字b\r\né€😀",
	"a full line":           strings.Repeat("x", 40) + "\r\n" + strings.Repeat("y", 40),
	"a hidden cursor":       "\x1b[?25labc",
	"a cursor in the midst": "abc\x1b[3;7H",
	"the alternate screen":  "main\x1b[?1049h\x1b[2;3Halt",
	"modes":                 "\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?1h\x1b[?7lx",
	"questions":             "\x1b[c\x1b[6n\x1b[?1;2$pshown",
	"a title":               "\x1b]2;the title\x07x",
	"scrolled away":         strings.Repeat("line\r\n", 30) + "end",
}

func TestAPictureShowsWhatTheScreenShows(t *testing.T) {
	t.Parallel()
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 10, 40)
			write(t, s, program)
			picture := string(s.Paint())
			viewer := newScreen(t, 10, 40)
			write(t, viewer, "\x1b[?1003h\x1b[31mwhat it showed before\r\n")
			for range 2 { // the second changes nothing
				write(t, viewer, picture)
				if got := string(viewer.Paint()); got != picture {
					t.Errorf("the viewer's own picture is\n%q, want\n%q", got, picture)
				}
			}
			if viewer.Text() != s.Text() {
				t.Errorf("the viewer shows\n%q, want\n%q", viewer.Text(), s.Text())
			}
		})
	}
}

func TestCase_E8_ALateViewerIsGivenTheModesAndNoHalfSequence(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 24, 80)
	write(t, s, "\x1b[?1049h\x1b[?1000h\x1b[?2004h")
	var redraws strings.Builder
	for i := 0; redraws.Len() < 300_000; i++ {
		fmt.Fprintf(&redraws, "\x1b[%d;1H\x1b[3%dmrow %d\x1b[K", i%24+1, i%8, i)
	}
	write(t, s, redraws.String()+"\x1b[5;1")
	picture := string(s.Paint())
	if len(picture) > 64<<10 {
		t.Errorf("the picture has %d bytes", len(picture))
	}
	if !strings.HasPrefix(picture, "\x1b[?1049l\x1b[!p") {
		t.Errorf("it begins with %q", picture[:20])
	}
	for _, mode := range []string{"\x1b[?1049h", "\x1b[?1000h", "\x1b[?2004h"} {
		if !strings.Contains(picture, mode) {
			t.Errorf("it does not set %q", mode)
		}
	}
	viewer := newScreen(t, 24, 80)
	write(t, viewer, picture)
	for _, to := range []*screen.Screen{s, viewer} { // the rest of the sequence
		write(t, to, "0HX")
	}
	if viewer.Text() != s.Text() || strings.Contains(viewer.Text(), "0HX") {
		t.Errorf("the viewer shows\n%s\nwant\n%s", viewer.Text(), s.Text())
	}
}

func TestOutputCutAnywhereIsShownTheSame(t *testing.T) {
	t.Parallel()
	const program = "aé€😀\x1b[1;31mred\x1b[0m\x1b]2;title\x1b\\b\x1bP1$r0m\x1b\\c\x1b(B\x1b[3;4Hd\x1b[12\x18e"
	whole := newScreen(t, 5, 40)
	write(t, whole, program)
	for cut := range len(program) {
		s, viewer := newScreen(t, 5, 40), newScreen(t, 5, 40)
		write(t, s, program[:cut])
		write(t, viewer, string(s.Paint()))
		write(t, s, program[cut:])
		write(t, viewer, program[cut:])
		if s.Text() != whole.Text() {
			t.Errorf("cut at %d it shows %q, want %q", cut, s.Text(), whole.Text())
		}
		if viewer.Text() != whole.Text() {
			t.Errorf("a viewer from %d on shows %q, want %q", cut, viewer.Text(), whole.Text())
		}
	}
}

func FuzzAPictureIsStable(f *testing.F) {
	for _, p := range programs {
		f.Add([]byte(p))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newScreen(t, 10, 40)
		write(t, s, string(b))
		_ = s.Paint()
	})
}

func TestSkimmingKeepsTheModesOfWhatItSkips(t *testing.T) {
	t.Parallel()
	const modes = "\x1b[?1049h\x1b[?1000h\x1b[?2004h\x1b]2;a title\x07\x1b[?25l"
	redraw := "\x1b[H" + strings.Repeat("\x1b[1mtext\x1b[0m and é more\r\n", 2000) // cut anywhere below
	for cut := range 40 {
		whole, skimmed := newScreen(t, 10, 40), newScreen(t, 10, 40)
		all := modes + redraw
		at := len(all) - 20_000 + cut
		write(t, whole, all)
		skimmed.Skim([]byte(all[:len(modes)/2]))
		skimmed.Skim([]byte(all[len(modes)/2 : at]))
		write(t, skimmed, all[at:])
		if got, want := string(skimmed.Paint()), string(whole.Paint()); got != want {
			t.Fatalf("cut at %d it paints\n%q\nwant\n%q", at, got, want)
		}
	}
}
