package schemas_test

import (
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"

	"keryx/schemas"
)

// asyncAPI is what clients build on of an AsyncAPI document.
type asyncAPI struct {
	Channels map[string]struct {
		Address   string         `yaml:"address"`
		Messages  map[string]any `yaml:"messages"`
		Publish   []string       `yaml:"x-keryx-publish"`
		Subscribe []string       `yaml:"x-keryx-subscribe"`
	} `yaml:"channels"`
	Operations map[string]struct {
		Action string `yaml:"action"`
		Reply  any    `yaml:"reply"`
	} `yaml:"operations"`
}

func readAsyncAPI(t *testing.T, text []byte) (doc asyncAPI) {
	t.Helper()
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestReleasedAsyncAPI_only_grows compares the document with the one that was released last:
// no subject, message, right or answer goes away.
func TestReleasedAsyncAPI_only_grows(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("released/v1/asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before, after := readAsyncAPI(t, text), readAsyncAPI(t, schemas.AsyncAPI)
	if len(before.Channels) < 70 || len(before.Operations) < 65 {
		t.Fatalf("released are only %d channels and %d operations", len(before.Channels), len(before.Operations))
	}
	for id, was := range before.Channels {
		is, ok := after.Channels[id]
		if !ok || is.Address != was.Address {
			t.Errorf("channel %s was at %q and is at %q", id, was.Address, is.Address)
		}
		for name := range was.Messages {
			if _, ok := is.Messages[name]; !ok {
				t.Errorf("channel %s has lost %s", id, name)
			}
		}
		for _, role := range was.Publish {
			if !slices.Contains(is.Publish, role) {
				t.Errorf("role %s may no longer publish on %s", role, id)
			}
		}
		for _, role := range was.Subscribe {
			if !slices.Contains(is.Subscribe, role) {
				t.Errorf("role %s may no longer subscribe to %s", role, id)
			}
		}
	}
	for id, was := range before.Operations {
		if is := after.Operations[id]; is.Action != was.Action || (was.Reply != nil) != (is.Reply != nil) {
			t.Errorf("operation %s was %+v and is %+v", id, was, is)
		}
	}
}
