package broker_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"keryx/schemas"
)

// describedChannel is what schemas/asyncapi.yaml says of a form of subject.
type describedChannel struct {
	Address   string   `yaml:"address"`
	Publish   []string `yaml:"x-keryx-publish"`
	Subscribe []string `yaml:"x-keryx-subscribe"`
}

// TestAsyncAPI_says_who_may_publish_and_subscribe holds the document to what the server
// lets principals of each role do. Commands of every kind come through to the authority,
// which looks at the role itself.
func TestAsyncAPI_says_who_may_publish_and_subscribe(t *testing.T) {
	t.Parallel()
	var doc struct {
		Channels map[string]describedChannel `yaml:"channels"`
	}
	if err := yaml.Unmarshal(schemas.AsyncAPI, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Channels) < 70 {
		t.Fatalf("the document has %d channels", len(doc.Channels))
	}
	eachRole(t, func(w *walker) {
		for id, c := range doc.Channels {
			w.described(id, c)
		}
	})
}

var parameter = regexp.MustCompile(`\{([a-z]+)\}`)

// literalOf fills in an address: all names are the walker's own.
func literalOf(address string) string {
	return parameter.ReplaceAllStringFunc(address, func(p string) string {
		switch p {
		case "{profile}":
			return "main"
		case "{principal}", "{host}", "{executor}":
			return "me"
		}
		return "X"
	})
}

func (w *walker) described(id string, c describedChannel) {
	w.t.Helper()
	subject := literalOf(c.Address)
	if got, want := w.hears(subject, "", subject), slices.Contains(c.Subscribe, string(w.role)); got != want {
		w.t.Errorf("channel %s: hears %s: %v, the document says %v", id, subject, got, want)
	}
	w.heard()
	if err := errors.Join(w.me.Publish(subject, []byte("x")), w.me.Flush()); err != nil {
		w.t.Fatalf("%s: %v", id, err)
	}
	passed, want := len(w.heard()) > 0, slices.Contains(c.Publish, string(w.role))
	if strings.HasPrefix(id, "cmd.") && passed || passed == want {
		return
	}
	w.t.Errorf("channel %s: publish on %s passed: %v, the document says %v", id, subject, passed, want)
}
