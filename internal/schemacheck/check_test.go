package schemacheck_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"keryx/internal/schemacheck"
	"keryx/schemas"
)

const (
	good = `{"specversion":"1.0","id":"1","source":"/x","type":"keryx.cmd.turn.show.v1","data":{"turn":"01JSESS10N0000000000000000"}}`
	bad  = `{"specversion":"1.0","id":"2","source":"/x","type":"keryx.cmd.turn.show.v1","data":{"turn":7}}`
)

var badFault = schemacheck.Fault{ID: "2", Type: "keryx.cmd.turn.show.v1", Path: "/data/turn", Message: "a string is needed, not a number"}

func at(line, entry int, f schemacheck.Fault) schemacheck.Fault {
	f.Line, f.Entry = line, entry
	return f
}

func TestCheck_names_line_and_path(t *testing.T) {
	t.Parallel()
	pretty := strings.ReplaceAll(bad, ",", ",\n ")
	for _, c := range []struct {
		name, in string
		checked  int
		want     []schemacheck.Fault
	}{
		{"one event", good, 1, nil},
		{"JSON lines", good + "\n" + bad + "\n\n" + good + "\n", 3, []schemacheck.Fault{at(2, 0, badFault)}},
		{"lines with CR", good + "\r\n" + bad, 2, []schemacheck.Fault{at(2, 0, badFault)}},
		{"empty lines first", "\n \n" + bad, 1, []schemacheck.Fault{at(3, 0, badFault)}},
		{"two on a line", good + bad, 2, []schemacheck.Fault{at(1, 0, badFault)}},
		{"a document over lines", "\n" + pretty + "\n" + bad, 2, []schemacheck.Fault{at(2, 0, badFault), at(7, 0, badFault)}},
		{"a list", "[" + good + ",\n" + bad + ",\n\n" + bad + "]", 3, []schemacheck.Fault{at(2, 2, badFault), at(4, 3, badFault)}},
		{"a list on a line", "[" + good + "]\n[" + bad + "]", 2, []schemacheck.Fault{at(2, 1, badFault)}},
		{"a line that is no JSON keeps no other from being looked at", good + "\n{\"a\":}\n" + bad, 3, []schemacheck.Fault{
			{Line: 2, Message: "not JSON: invalid character '}' looking for beginning of value"}, at(3, 0, badFault),
		}},
		{"a document cut off", "{\n\"a\":\n", 1, []schemacheck.Fault{{Line: 3, Message: "not JSON: unexpected EOF"}}},
		{"no event", `7`, 1, []schemacheck.Fault{{Line: 1, Message: "structured event: not a JSON object"}}},
		{"a missing attribute", `{"specversion":"1.0","id":"1","source":"/x"}`, 1, []schemacheck.Fault{
			{Line: 1, Path: "type", Message: "attribute type: a required attribute is missing"},
		}},
		{"a foreign type", `{"specversion":"1.0","id":"1","source":"/x","type":"build.failed"}`, 1, []schemacheck.Fault{
			{Line: 1, ID: "1", Type: "build.failed", Path: "type", Message: "no event or command of the bus has this type"},
		}},
		{"a foreign schema", strings.Replace(good, `"data"`, `"dataschema":"urn:x:y","data"`, 1), 1, []schemacheck.Fault{
			{Line: 1, ID: "1", Type: "keryx.cmd.turn.show.v1", Path: "dataschema", Message: "it is not urn:keryx:schema:keryx.cmd.turn.show.v1"},
		}},
		{"no data", `{"specversion":"1.0","id":"1","source":"/x","type":"keryx.cmd.turn.show.v1"}`, 1, []schemacheck.Fault{
			{Line: 1, ID: "1", Type: "keryx.cmd.turn.show.v1", Path: "/data", Message: "the data is absent"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []schemacheck.Fault
			k := schemacheck.Checker{Report: func(f schemacheck.Fault) { got = append(got, f) }}
			if err := k.Check(iotest.OneByteReader(strings.NewReader(c.in))); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if k.Checked != c.checked || k.Faulty != len(c.want) {
				t.Errorf("%d checked, %d faulty; want %d, %d", k.Checked, k.Faulty, c.checked, len(c.want))
			}
		})
	}
}

func TestCheck_takes_bare_data_of_a_type(t *testing.T) {
	t.Parallel()
	var got []schemacheck.Fault
	k := schemacheck.Checker{Type: "keryx.order.stop.v1", Report: func(f schemacheck.Fault) { got = append(got, f) }}
	in := `{"session":"01JSESS10N0000000000000000","exec":"01JSESS10N0000000000000000","reason":""}` + "\n[]"
	if err := k.Check(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
	want := []schemacheck.Fault{{Line: 2, Type: "keryx.order.stop.v1", Message: "an object is needed, not an array"}}
	if d := cmp.Diff(want, got); d != "" || k.Checked != 2 {
		t.Errorf("%d checked: %s", k.Checked, d)
	}
}

func TestCheck_says_when_it_could_not_look(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		name, typ string
		in        io.Reader
		want      error
	}{
		{"nothing", "", strings.NewReader(""), schemacheck.ErrEmpty},
		{"white space", "", strings.NewReader(" \n\n"), schemacheck.ErrEmpty},
		{"an empty list", "", strings.NewReader("[]"), schemacheck.ErrEmpty},
		{"a line that is too long", "", bytes.NewReader(bytes.Repeat([]byte(" "), schemacheck.MaxLine+1)), schemacheck.ErrTooLong},
		{"a second line that is too long", "", io.MultiReader(strings.NewReader(good+"\n"), bytes.NewReader(bytes.Repeat([]byte(" "), schemacheck.MaxLine+1))), schemacheck.ErrTooLong},
		{"a document that is too long", "", io.MultiReader(strings.NewReader("{\n"), bytes.NewReader(bytes.Repeat([]byte(" "), schemacheck.MaxDocument+1))), schemacheck.ErrTooLong},
		{"a broken file", "", iotest.ErrReader(broken), broken},
		{"a file that breaks", "", io.MultiReader(strings.NewReader(good+"\n"), iotest.ErrReader(broken)), broken},
		{"an unknown type", "keryx.sing.v1", strings.NewReader("{}"), schemas.ErrUnknownType},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := schemacheck.Checker{Type: c.typ, Report: func(schemacheck.Fault) {}}
			if err := k.Check(c.in); !errors.Is(err, c.want) {
				t.Errorf("error is %v, want %v", err, c.want)
			}
		})
	}
}

// FuzzCheck: whatever comes, each value is counted once, and no line lies outside of the input.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{good, bad, good + "\n" + bad, "[" + good + "," + bad + "]", "{\n", "[[\n1]\n,{}]", "\x00", "[]\n{}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		faults, last := 0, 1
		k := schemacheck.Checker{Report: func(f schemacheck.Fault) {
			faults++
			if f.Line < last || f.Line > bytes.Count(in, []byte("\n"))+1 || f.Message == "" {
				t.Errorf("after line %d: %+v", last, f)
			}
			last = f.Line
		}}
		err := k.Check(bytes.NewReader(in))
		if faults != k.Faulty || k.Faulty > k.Checked || (err == nil) != (k.Checked > 0) {
			t.Errorf("%d faults told, %d counted of %d (%v)", faults, k.Faulty, k.Checked, err)
		}
	})
}
