package asciicast

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"
	"unicode/utf8"
)

// Header is what is known of a recording. Width and Height are needed.
type Header struct {
	Width, Height int
	// Start is when the recording began; events are told relative to it. Zero: at the
	// first event.
	Start   time.Time
	Command string
	Env     map[string]string
}

// Writer writes one recording. Close it.
type Writer struct {
	w     io.Writer
	start time.Time
	last  time.Duration
	rest  []byte // the beginning of a character
}

// New writes the header.
func New(w io.Writer, h Header) (*Writer, error) {
	head := struct {
		Version   int               `json:"version"`
		Width     int               `json:"width"`
		Height    int               `json:"height"`
		Timestamp int64             `json:"timestamp,omitempty"`
		Command   string            `json:"command,omitempty"`
		Env       map[string]string `json:"env,omitempty"`
	}{Version: 2, Width: h.Width, Height: h.Height, Command: h.Command, Env: h.Env}
	if !h.Start.IsZero() {
		head.Timestamp = h.Start.Unix()
	}
	out := &Writer{w: w, start: h.Start}
	return out, out.line(head)
}

// Output writes what the terminal showed at a time. Time never goes back in a recording:
// what comes with an earlier one is told at that of the event before.
func (w *Writer) Output(at time.Time, b []byte) error {
	text := w.text(b)
	if text == "" {
		return nil
	}
	return w.event(at, "o", text)
}

// Resize writes that the terminal has another size from a time on.
func (w *Writer) Resize(at time.Time, rows, cols int) error {
	return w.event(at, "r", fmt.Sprintf("%dx%d", cols, rows))
}

// Close writes what was left of a character.
func (w *Writer) Close() error {
	if len(w.rest) == 0 {
		return nil
	}
	w.rest = nil
	return w.event(w.start.Add(w.last), "o", string(utf8.RuneError))
}

func (w *Writer) event(at time.Time, kind, text string) error {
	if w.start.IsZero() {
		w.start = at
	}
	w.last = max(w.last, at.Sub(w.start))
	seconds := math.Round(w.last.Seconds()*1e6) / 1e6
	return w.line([]any{seconds, kind, text})
}

func (w *Writer) line(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = w.w.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// text returns the whole characters of what is there, and keeps the beginning of one.
func (w *Writer) text(b []byte) string {
	all := append(w.rest, b...)
	w.rest = nil
	for i := max(0, len(all)-utf8.UTFMax+1); i < len(all); i++ {
		if utf8.RuneStart(all[i]) && !utf8.FullRune(all[i:]) {
			w.rest = append([]byte(nil), all[i:]...)
			all = all[:i]
			break
		}
	}
	return string([]rune(string(all)))
}
