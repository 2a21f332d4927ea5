package cli_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"keryx/internal/cli"
)

func TestParseTimeTakesWhatPeopleWrite(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("here", 2*60*60)
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, zone)
	tests := []struct {
		name, text string
		want       time.Time // zero for refused
	}{
		{"RFC 3339 with its own zone", "2026-12-01T18:00:00Z", time.Date(2026, 12, 1, 18, 0, 0, 0, time.UTC)},
		{"a local date and time", "2026-12-02 08:30", time.Date(2026, 12, 2, 8, 30, 0, 0, zone)},
		{"a time of day is today", "18:00", time.Date(2026, 12, 1, 18, 0, 0, 0, zone)},
		{"or tomorrow when it has passed", "08:00:30", time.Date(2026, 12, 2, 8, 0, 30, 0, zone)},
		{"now is tomorrow", "12:00", time.Date(2026, 12, 2, 12, 0, 0, 0, zone)},
		{"a word", "tomorrow", time.Time{}},
		{"an hour that no day has", "25:00", time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := cli.ParseTime(tt.text, now)
			var usage *cli.UsageError
			if tt.want.IsZero() != errors.As(err, &usage) || !got.Equal(tt.want) {
				t.Errorf("%s: %v, %v", tt.text, got, err)
			}
		})
	}
}

func TestOneOfNamesTheSet(t *testing.T) {
	t.Parallel()
	if v, err := cli.OneOf("fruit", "pear", "apple", "pear"); v != "pear" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := cli.OneOf("fruit", "", "apple"); v != "" || err != nil {
		t.Errorf("not given: %q, %v", v, err)
	}
	if _, err := cli.OneOf("fruit", "nut", "apple", "pear"); err == nil || err.Error() != `--fruit "nut": one of apple, pear` {
		t.Errorf("%v", err)
	}
}

func TestProgressAwayFromATerminalIsALineForEachChange(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := cli.NewProgress(&out)
	for _, text := range []string{"queued", "queued", "offered\x1b[2J"} {
		p.Show(text)
	}
	p.Done()
	if want := "queued\noffered\\x1b[2J\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
