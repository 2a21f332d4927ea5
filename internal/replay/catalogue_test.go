package replay_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"keryx/events"
	"keryx/internal/replay"
)

// fill sets every field of a struct to something that shows, text to s.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), s)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 12, 1, 2, 3, 4, 0, time.UTC)))
			return
		}
		if v.Type() == reflect.TypeFor[events.LeaseKey]() {
			v.Set(reflect.ValueOf(events.LeaseKey{Profile: "default", Kind: events.LeaseTarget, Name: "local"}))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), s)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[events.Raw]() {
			v.SetBytes([]byte(`{"a":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), s)
	case reflect.String:
		v.SetString(s)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(7)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// nameLeases sets lease keys, which have no empty form.
func nameLeases(v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Field(i); f.Type() == reflect.TypeFor[events.LeaseKey]() {
			fill(f, "")
		}
	}
}

func TestEveryEventTypeTellsSomethingOfItsOwn(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 2, 3, 4, 0, time.UTC)
	for _, entry := range events.Catalogue() {
		if entry.Class != events.ClassEvent {
			continue
		}
		t.Run(entry.Type.Short(), func(t *testing.T) {
			t.Parallel()
			data := entry.New()
			fill(reflect.ValueOf(data).Elem(), "evil\x1b[2J\u202e\r\n")
			line := replay.Line(record(t, 3, entry.Type, "cli", at, data), replay.Options{})
			if strings.Contains(line, "does not know") || strings.Contains(line, "cannot be decoded") {
				t.Errorf("nothing told of %s: %s", entry.Type, line)
			}
			if i := strings.IndexFunc(line, unicode.IsControl); i >= 0 || strings.ContainsRune(line, 0x202e) {
				t.Errorf("the line holds a control character: %q", line)
			}
			shown := regexp.MustCompile(`^02:03:04\.000    3 e1  \S+ +cli +\S`)
			if !shown.MatchString(line) {
				t.Errorf("line %q does not match %s", line, shown)
			}
		})
	}
}

func TestEveryEventTypeSurvivesEmptyAndBrokenData(t *testing.T) {
	t.Parallel()
	for _, entry := range events.Catalogue() {
		if entry.Class != events.ClassEvent {
			continue
		}
		data := entry.New()
		nameLeases(reflect.ValueOf(data).Elem())
		r := record(t, 1, entry.Type, "cli", time.Unix(0, 0), data)
		if line := replay.Line(r, replay.Options{}); strings.Contains(line, "cannot be decoded") {
			t.Errorf("%s with zero data: %s", entry.Type, line)
		}
		r.Data = []byte(`["not an object"]`)
		if line := replay.Line(r, replay.Options{}); !strings.Contains(line, "cannot be decoded") {
			t.Errorf("%s with broken data does not say so: %s", entry.Type, line)
		}
	}
}

func TestAnUnknownTypeShowsItsData(t *testing.T) {
	t.Parallel()
	r := record(t, 1, "keryx.moon.risen.v9", "cli", time.Unix(0, 0), map[string]int{"phase": 4})
	line := replay.Line(r, replay.Options{})
	if !strings.Contains(line, "moon.risen") || !strings.Contains(line, `{"phase":4}`) {
		t.Errorf("line of an unknown type: %s", line)
	}
}
