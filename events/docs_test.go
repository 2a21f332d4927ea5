package events_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/schemas"
)

const docsHead = `# Events, commands and orders

Made from the catalogue and the schemas by ` + "`go test ./events -run TestDocs -update`" + `; do not edit.

Events are facts, written only by the authority; the source of each is the principal whose command
caused it, or the authority itself. Commands are requests of principals, answered once. Both are
CloudEvents 1.0 in the binary mode of the NATS binding (the structured mode is read too), with data in
JSON. Orders are plain JSON that the authority tells one host or executor.

A field with ` + "`?`" + ` may be absent. What each field means and may hold is in [fields.md](fields.md), in the schema
behind the type, and in ` + "`bus schema show TYPE`" + `; ` + "`bus schema check FILE`" + ` holds events and commands to it. Who publishes
what on which subject is in [asyncapi.yaml](../schemas/asyncapi.yaml) (AsyncAPI 3.0). Readers must bear unknown fields and
types; commands with an unknown field are refused.

## Attributes

| attribute | meaning |
|---|---|
| ` + "`id`" + ` | a ULID; the same command sent again has the same id and gets the first answer |
| ` + "`source`" + ` | ` + "`/profiles/<profile>/principals/<principal>`" + ` |
| ` + "`type`" + ` | see below |
| ` + "`subject`" + ` | the scope: a session's id, ` + "`_profile`" + `, ` + "`setup-<run>`" + `, or ` + "`account-<name>`" + ` |
| ` + "`time`" + ` | an event's is set by the authority and never less than that of the event before in its scope |
| ` + "`dataschema`" + ` | ` + "`urn:keryx:schema:<type>`" + ` |
| ` + "`datacontenttype`" + ` | ` + "`application/json`" + ` |
| ` + "`ordinal`" + ` | the place in the scope, from 1, without gaps, over all epochs |
| ` + "`sequence`" + ` | the place in the store; set on reading |
| ` + "`epoch`" + `, ` + "`turnid`" + ` | the session's epoch and turn that the event belongs to |
| ` + "`causationid`" + ` | the id of the command that caused the event |
| ` + "`correlationid`" + `, ` + "`traceparent`" + `, ` + "`tracestate`" + ` | as the command had them |
| ` + "`sessionfence`" + `, ` + "`leasefence`" + ` | the right under which it was done, ` + "`<generation>.<sequence>`" + ` |
| ` + "`reportedtime`" + ` | the sender's own clock |
| ` + "`actingfor`" + ` | for whom a gateway acts |

Sequence, ordinal and fences are strings: an integer of CloudEvents has 32 bits.
`

func TestDocs_are_made_of_the_catalogue(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(docsHead)
	eventTables(t, &b)
	commandTables(t, &b)
	orderTable(t, &b)
	errorTable(&b)
	got := golden(t, "../docs/events.md", []byte(b.String()))
	if d := cmp.Diff(b.String(), string(got)); d != "" {
		t.Errorf("docs/events.md is out of date; run go test ./events -run TestDocs -update (-want +got):\n%s", d)
	}
}

// nouns calls section for each noun of a class, in the catalogue's order.
func nouns(class events.Class, section func(noun string, entries []events.Entry)) {
	var order []string
	byNoun := map[string][]events.Entry{}
	for _, e := range events.Catalogue() {
		if e.Class != class {
			continue
		}
		noun, _, _ := strings.Cut(e.Type.Short(), ".")
		if byNoun[noun] == nil {
			order = append(order, noun)
		}
		byNoun[noun] = append(byNoun[noun], e)
	}
	for _, noun := range order {
		section(noun, byNoun[noun])
	}
}

func eventTables(t *testing.T, b *strings.Builder) {
	t.Helper()
	b.WriteString("\n## Events\n")
	nouns(events.ClassEvent, func(noun string, entries []events.Entry) {
		fmt.Fprintf(b, "\n### %s\n\n| type | what it says | scope | fields |\n|---|---|---|---|\n", noun)
		for _, e := range entries {
			scope := "session"
			if e.Profile {
				scope = "`_profile`"
			}
			if e.Run {
				scope = "`setup-<run>`"
			}
			if e.Account {
				scope = "`account-<name>`"
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", link(string(e.Type)), meaning(t, string(e.Type)), scope, fields(e.New()))
		}
	})
}

func commandTables(t *testing.T, b *strings.Builder) {
	t.Helper()
	b.WriteString("\n## Commands\n\nA command that only reads may be sent by every role.\n")
	nouns(events.ClassCommand, func(noun string, entries []events.Entry) {
		fmt.Fprintf(b, "\n### cmd.%s\n\n| type | what it asks | who sends | fields | answer |\n|---|---|---|---|---|\n", noun)
		for _, e := range entries {
			who := "all, reads only"
			if !e.Read {
				who = roles(e.Roles)
			}
			doc, _, _ := strings.Cut(meaning(t, string(e.Type)), " Answer:")
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", link(string(e.Type)), doc, who, fields(e.New()), fields(e.Answer()))
		}
	})
}

func roles(rs []events.Role) string {
	var out []string
	for _, r := range rs {
		out = append(out, string(r))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func orderTable(t *testing.T, b *strings.Builder) {
	t.Helper()
	b.WriteString("\n## Orders\n\n| type | what it says | fields |\n|---|---|---|\n")
	for _, o := range events.Orders() {
		fmt.Fprintf(b, "| %s | %s | %s |\n", link(string(o.Type)), meaning(t, string(o.Type)), fields(o.New()))
	}
}

func errorTable(b *strings.Builder) {
	b.WriteString("\n## Errors\n\nEvery refusal has one of these codes, a message, and where it can the path of the offending input. A retry\nwith the same id never does the work twice.\n\n| code | meaning | may succeed later | HTTP |\n|---|---|---|---|\n")
	for _, c := range events.Codes() {
		fmt.Fprintf(b, "| `%s` | %s | %s | %d |\n", c.Code, cell(c.Meaning), map[bool]string{true: "yes", false: "no"}[c.Retryable], c.HTTPStatus)
	}
}

func link(name string) string { return fmt.Sprintf("[`%s`](../schemas/%s.json)", name, name) }

// meaning returns the description of a schema.
func meaning(t *testing.T, name string) string {
	t.Helper()
	body, err := schemas.FS.ReadFile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	doc, _ := plain(t, body).(map[string]any)
	text, _ := doc["description"].(string)
	return cell(text)
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "\n", " ").Replace(s)
}

// fields lists the names of a struct in its order; those that may be absent have a "?".
func fields(v any) string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		if strings.Contains(options, "omit") {
			name += "?"
		}
		out = append(out, "`"+name+"`")
	}
	if out == nil {
		return "-"
	}
	return strings.Join(out, " ")
}
