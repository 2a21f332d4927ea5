package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCommittedSchemas_are_those_of_the_structs fails when a struct or comment changed
// and go generate was not run, or when a schema was edited by hand.
func TestCommittedSchemas_are_those_of_the_structs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := run("../../../events", dir, dir); err != nil {
		t.Fatal(err)
	}
	made, committed := files(t, dir), files(t, "../..")
	if !slices.Equal(made, committed) {
		t.Fatalf("made are %d files, committed %d: %v, %v", len(made), len(committed), made, committed)
	}
	for _, name := range made {
		want, got := read(t, dir, name), read(t, "../..", name)
		if got != want {
			t.Errorf("%s is not what go generate makes", name)
		}
	}
	if read(t, "../../../docs", fieldsFile) != read(t, dir, fieldsFile) {
		t.Errorf("docs/%s is not what go generate makes", fieldsFile)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, filepath.Join(dir, asyncAPIFile))
	for i, f := range found {
		found[i] = filepath.Base(f)
	}
	return found
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSentence_makes_words_of_comments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ doc, goName, name, want string }{
		{"Since is when it began", "Since", "since", "When it began."},
		{"KnownOffers are offers it has seen.", "KnownOffers", "known_offers", "Offers it has seen."},
		{"Follow lets a name pass.", "Follow", "follow", "follow lets a name pass."},
		{"Outcome says how it ended.", "Outcome", "", "Says how it ended."},
		{"stdout or stderr", "Name", "name", "Stdout or stderr."},
		{"", "Name", "name", ""},
	} {
		if got := sentence(c.doc, c.goName, c.name); got != c.want {
			t.Errorf("sentence(%q) is %q, want %q", c.doc, got, c.want)
		}
	}
}
