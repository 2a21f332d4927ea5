package asciicast_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"keryx/internal/asciicast"
)

func TestARecordingIsAHeaderAndEvents(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	w, err := asciicast.New(&b, asciicast.Header{Width: 123, Height: 45, Start: start, Command: "sh", Env: map[string]string{"TERM": "xterm"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		at   time.Duration
		text string
	}{{0, "a\x1b[1m"}, {1500 * time.Millisecond, "b\r\n"}, {time.Second, "late"}} {
		if err := w.Output(start.Add(e.at), []byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Resize(start.Add(2*time.Second), 30, 90); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := `{"version":2,"width":123,"height":45,"timestamp":1796083200,"command":"sh","env":{"TERM":"xterm"}}
[0,"o","a\u001b[1m"]
[1.5,"o","b\r\n"]
[1.5,"o","late"]
[2,"r","90x30"]
`
	if b.String() != want {
		t.Errorf("recorded\n%s\nwant\n%s", b.String(), want)
	}
}

func TestCharactersSplitAnywhereArePutTogether(t *testing.T) {
	t.Parallel()
	const text = "aé€😀z"
	for cut := range len(text) {
		for second := cut; second < len(text); second++ {
			var b strings.Builder
			w, err := asciicast.New(&b, asciicast.Header{Width: 1, Height: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, piece := range []string{text[:cut], text[cut:second], text[second:]} {
				if err := w.Output(time.Now(), []byte(piece)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got := shown(t, b.String()); got != text {
				t.Fatalf("cut at %d and %d it is %q", cut, second, got)
			}
		}
	}
}

func TestWhatIsNoCharacterIsReplaced(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w, err := asciicast.New(&b, asciicast.Header{Width: 1, Height: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Output(time.Now(), []byte("a\xffb\xe2\x82")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, b.String()); got != "a\ufffdb\ufffd" {
		t.Errorf("recorded %q", got)
	}
}

func shown(t *testing.T, recording string) (text string) {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSuffix(recording, "\n"), "\n") {
		if i == 0 {
			continue
		}
		var e []any
		if err := json.Unmarshal([]byte(line), &e); err != nil || len(e) != 3 {
			t.Fatalf("line %q: %v", line, err)
		}
		text += e[2].(string)
	}
	return text
}
