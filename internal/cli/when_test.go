package cli_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"keryx/internal/cli"
	"keryx/internal/travel"
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

func TestParsePastTakesWhatHasPassed(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("here", 2*60*60)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, zone)
	for _, c := range []struct {
		name, text string
		want       time.Time // zero for refused
	}{
		{"how long ago", "-1h30m", now.Add(-90 * time.Minute)},
		{"a time of day is today's when it has passed", "08:00", time.Date(2026, 3, 1, 8, 0, 0, 0, zone)},
		{"else yesterday's", "18:00:30", time.Date(2026, 2, 28, 18, 0, 30, 0, zone)},
		{"now has passed", "12:00", now},
		{"equal whatever the zone", "2026-03-01T09:00:00+01:00", time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)},
		{"a minus of a minus", "--5m", time.Time{}},
		{"no unit", "-5", time.Time{}},
		{"a word", "yesterday", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := cli.ParsePast(c.text, now)
			var usage *cli.UsageError
			if c.want.IsZero() != errors.As(err, &usage) || !got.Equal(c.want) {
				t.Errorf("%s: %v, %v", c.text, got, err)
			}
		})
	}
}

func TestParseMomentTellsOrdinalsSequencesAndTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text string
		want travel.Moment
		bad  bool
	}{
		{"", travel.Moment{}, false},
		{"#120", travel.Moment{Ordinal: 120}, false},
		{"120", travel.Moment{Sequence: 120}, false},
		{"-5m", travel.Moment{Time: now.Add(-5 * time.Minute)}, false},
		{"2026-03-01T11:00:00Z", travel.Moment{Time: now.Add(-time.Hour)}, false},
		{"#0", travel.Moment{}, true},
		{"0", travel.Moment{}, true},
		{"#x", travel.Moment{}, true},
		{"#-5m", travel.Moment{}, true},
		{"99999999999999999999", travel.Moment{}, true},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			got, err := cli.ParseMoment(c.text, now)
			var usage *cli.UsageError
			if c.bad != errors.As(err, &usage) || !c.bad && got != c.want {
				t.Errorf("%q: %+v, %v", c.text, got, err)
			}
		})
	}
}
