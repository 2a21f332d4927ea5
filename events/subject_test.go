package events_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"keryx/events"
)

// builders are the functions that build subjects from names, with the subject that
// arguments "a1", "a2", ... give.
var builders = map[string]struct {
	fn   any
	want string
}{
	"LogSubject":     {events.LogSubject, "kx.log.a1.a2"},
	"LiveSubject":    {events.LiveSubject, "kx.live.a1.a2"},
	"LiveAll":        {events.LiveAll, "kx.live.a1.>"},
	"HostSubject":    {events.HostSubject, "kx.host.a1.a2.a3.a4"},
	"HostAll":        {events.HostAll, "kx.host.a1.a2.a3.>"},
	"HostAny":        {events.HostAny, "kx.host.a1.a2.>"},
	"ExecSubject":    {events.ExecSubject, "kx.exec.a1.a2.a3.a4"},
	"ExecAll":        {events.ExecAll, "kx.exec.a1.a2.a3.>"},
	"ExecAny":        {events.ExecAny, "kx.exec.a1.a2.>"},
	"OutSubject":     {events.OutSubject, "kx.out.a1.a2.a3.a4"},
	"OutOfAny":       {events.OutOfAny, "kx.out.a1.*.a2.a3"},
	"OutOfSession":   {events.OutOfSession, "kx.out.a1.a2.a3.*"},
	"OutAll":         {events.OutAll, "kx.out.a1.>"},
	"OutBy":          {events.OutBy, "kx.out.a1.a2.*.*"},
	"PartSubject":    {events.PartSubject, "kx.part.a1.a2.a3.a4"},
	"PartAll":        {events.PartAll, "kx.part.a1.*.a2.*"},
	"PartsAll":       {events.PartsAll, "kx.part.a1.>"},
	"PartsBy":        {events.PartsBy, "kx.part.a1.a2.*.*"},
	"DeadSubject":    {events.DeadSubject, "kx.dead.a1.a2"},
	"DeadAll":        {events.DeadAll, "kx.dead.a1.*"},
	"OutOfEvery":     {events.OutOfEvery, "kx.out.a1.*.a2.*"},
	"IndexSubject":   {events.IndexSubject, "kx.snap._index.a1"},
	"SnapSubject":    {events.SnapSubject, "kx.snap.a1.a2"},
	"ImportSubject":  {events.ImportSubject, "kx.import.a1.a2"},
	"InboxPrefix":    {events.InboxPrefix, "_INBOX_a1_a2"},
	"InboxAll":       {events.InboxAll, "_INBOX_a1_a2.>"},
	"LeaseAll":       {events.LeaseAll, "kx.lease.a1.>"},
	"CmdAll":         {events.CmdAll, "kx.cmd.a1.a2.*.*"},
	"TTYSubject":     {events.TTYSubject, "kx.tty.a1.a2.a3.a4.a5"},
	"TTYBy":          {events.TTYBy, "kx.tty.a1.*.a2.*.*"},
	"TTYTo":          {events.TTYTo, "kx.tty.a1.a2.>"},
	"TypedSubject":   {events.TypedSubject, "kx.typed.a1.a2.a3.a4.a5"},
	"TypedBy":        {events.TypedBy, "kx.typed.a1.a2.*.*.*"},
	"TypedTo":        {events.TypedTo, "kx.typed.a1.*.a2.*.*"},
	"CmdSubject":     {func(p events.Profile, n events.PrincipalName) string { return command(p, n) }, "kx.cmd.a1.a2.turn.end"},
	"LeaseSubject":   {func(p events.Profile, k events.LeaseKind, n string) string { return lease(p, k, n) }, "kx.lease.a1.a2.a3"},
	"HandlerAny":     {events.HandlerAny, "kx.handler.a1.a2.>"},
	"HandlerAll":     {events.HandlerAll, "kx.handler.a1.a2.a3.>"},
	"HandlerSubject": {events.HandlerSubject, "kx.handler.a1.a2.a3.a4"},
	"PolicyAny":      {events.PolicyAny, "kx.policy.a1.a2.>"},

	"PolicySubject": {events.PolicySubject, "kx.policy.a1.a2.a3.ask"},
	"IDSubject": {func(p events.Profile, k events.NameKind) string {
		return events.IDSubject(p, events.Name{Kind: k, Value: "v"})
	}, "kx.id.a1.a2." + events.NameHash("v")},
	"LeaseKeyString": {func(p events.Profile, k events.LeaseKind, n string) string { return lease(p, k, n)[len("kx.lease."):] }, "a1.a2.a3"},
}

func command(p events.Profile, n events.PrincipalName) string {
	s, err := events.CmdSubject(p, n, events.CmdTurnEnd)
	if err != nil {
		panic(err)
	}
	return s
}

func lease(p events.Profile, k events.LeaseKind, n string) string {
	return events.LeaseSubject(events.LeaseKey{Profile: p, Kind: k, Name: n})
}

// call calls a builder with a1, a2, ... but with bad in place of the argument number i.
func call(fn any, i int, bad string) (subject string, panicked bool) {
	defer func() { panicked = recover() != nil }()
	f := reflect.ValueOf(fn)
	var args []reflect.Value
	for n := range f.Type().NumIn() {
		text := fmt.Sprintf("a%d", n+1)
		if n == i {
			text = bad
		}
		args = append(args, reflect.ValueOf(text).Convert(f.Type().In(n)))
	}
	return f.Call(args)[0].String(), false
}

func TestSubjects_are_built_of_literal_tokens(t *testing.T) {
	t.Parallel()
	for name, b := range builders {
		if got, panicked := call(b.fn, -1, ""); panicked || got != b.want {
			t.Errorf("%s is %q (panicked: %t), want %q", name, got, panicked, b.want)
		}
	}
}

func TestSubjects_refuse_tokens_that_would_widen_them(t *testing.T) {
	t.Parallel()
	for name, b := range builders {
		for i := range reflect.TypeOf(b.fn).NumIn() {
			for _, bad := range []string{"", "*", ">", "a.b", "a*", ".", "a b", "a\tb", "a\r\nPUB x", "\x7f", "\x00"} {
				if bad == "" && name[:3] == "Inb" { // the prefix alone has no empty token
					continue
				}
				if got, panicked := call(b.fn, i, bad); !panicked {
					t.Errorf("%s took %q as argument %d: %q", name, bad, i+1, got)
				}
			}
		}
	}
}

// TestSubjects_are_all_tested fails when a function that returns a subject is new.
func TestSubjects_are_all_tested(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"subject.go", "pattern.go"} {
		for _, fn := range functions(t, file) {
			if strings.HasPrefix(fn, "Parse") || fn == "NameHash" {
				continue
			}
			if _, ok := builders[fn]; !ok {
				t.Errorf("%s of %s is not in the table", fn, file)
			}
		}
	}
}

func TestCmdSubject_refuses_events(t *testing.T) {
	t.Parallel()
	for _, typ := range []events.Type{events.TypeTurnEnded, "", "keryx.cmd.turn.v1", "x"} {
		if s, err := events.CmdSubject("p", "n", typ); !errors.Is(err, events.ErrBadSubject) {
			t.Errorf("subject of %q is %q, %v", typ, s, err)
		}
	}
}

func TestParse_reads_what_was_built(t *testing.T) {
	t.Parallel()
	p, n, noun, verb, err := events.ParseCmdSubject(command("default", "gw"))
	if p != "default" || n != "gw" || noun != "turn" || verb != "end" || err != nil {
		t.Errorf("command subject is %s %s %s %s, %v", p, n, noun, verb, err)
	}
	for _, s := range []string{events.LogSubject("default", "_profile"), events.LiveSubject("default", "_profile")} {
		p, scope, err := events.ParseLogSubject(s)
		if p != "default" || scope != events.ScopeProfile || err != nil {
			t.Errorf("%s is %s %s, %v", s, p, scope, err)
		}
	}
	p, x, s, e, err := events.ParseOutSubject(events.OutSubject("default", "local", aSession, anExec))
	if p != "default" || x != "local" || s != aSession || e != anExec || err != nil {
		t.Errorf("output subject is %s %s %s %s, %v", p, x, s, e, err)
	}
}

func TestParse_refuses_other_subjects(t *testing.T) {
	t.Parallel()
	parsers := map[string]func(string) error{
		"cmd": func(s string) error { _, _, _, _, err := events.ParseCmdSubject(s); return err },
		"log": func(s string) error { _, _, err := events.ParseLogSubject(s); return err },
		"out": func(s string) error { _, _, _, _, err := events.ParseOutSubject(s); return err },
	}
	for kind, parse := range parsers {
		for _, s := range []string{
			"", "kx", "kx.log.p", "kx.log.p.s.x", "kx.log..s", "kx.log.p.", "kx.log.p.*", "kx.log.p.>", "ky.log.p.s", "kx.id.p.s",
			"kx.cmd.p.n.a", "kx.cmd.p.n.a.b.c", "kx.cmd.p..a.b", "kx.cmd.p.n.a.*", "ky.cmd.p.n.a.b", "kx.out.p.x.s", "kx.out.p.x.s.*", "kx.part.p.h.s.t",
		} {
			if err := parse(s); !errors.Is(err, events.ErrBadSubject) {
				t.Errorf("%s subject %q: %v", kind, s, err)
			}
		}
	}
}

func TestInboxPrefix_is_never_shared(t *testing.T) {
	t.Parallel()
	names := []string{"a", "a-b", "b", "-", "a--b"}
	seen := map[string]string{}
	for _, p := range names {
		for _, n := range names {
			if events.Profile(p).Validate() != nil {
				continue
			}
			prefix := events.InboxPrefix(events.Profile(p), events.PrincipalName(n)) + "."
			for other, who := range seen {
				if strings.HasPrefix(prefix, other) || strings.HasPrefix(other, prefix) {
					t.Errorf("the inbox of %s/%s is that of %s", p, n, who)
				}
			}
			seen[prefix] = p + "/" + n
		}
	}
}

func TestNameHash_is_a_token_of_130_bits_of_the_bytes_as_given(t *testing.T) {
	t.Parallel()
	// The first 26 characters of base32(sha256("abc")), from RFC 6234's test value.
	if got, want := events.NameHash("abc"), "xj4bnp4pahh6uqkbidpf3lrceo"; got != want {
		t.Errorf("hash is %s, want %s", got, want)
	}
	seen := map[string]string{}
	for _, v := range []string{"", "a", "A", "a ", "é", "e\u0301", "*", ">", "a.b"} {
		h := events.NameHash(v)
		if len(h) != 26 || strings.Trim(h, "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Errorf("hash of %q is %q", v, h)
		}
		if w, ok := seen[h]; ok {
			t.Errorf("%q and %q have one hash", v, w)
		}
		seen[h] = v
	}
}
