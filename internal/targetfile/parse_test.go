package targetfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"keryx/events"
	"keryx/internal/targetfile"
)

const whole = `# everything
name: work
kind: terminal
env_set: {LANG: C.UTF-8, EMPTY: ""}
env_unset: [MAIL]
authoritative_env: [HTTPS_PROXY]
command_prefix: [/usr/bin/env, --]
cwd: /srv/work
shell: /bin/bash
user: alice
runtime_dir: /run/keryx/work
validate:
  command: [test, -d, /srv/work]
  timeout: 1500ms
approval:
  default: on_request
  rules:
    - argv_prefix: [git, push]
      decision: always
exclusive: true
on_lease_loss: keep
limits:
  cpu: 1.5
  memory_bytes: 536870912
  pids: 256
  best_effort: true
`

func TestParse_reads_every_field(t *testing.T) {
	t.Parallel()
	got, err := targetfile.Parse("work.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := events.TargetSpec{
		Name: "work", Kind: "terminal", EnvSet: map[string]string{"LANG": "C.UTF-8", "EMPTY": ""}, EnvUnset: []string{"MAIL"},
		AuthoritativeEnv: []string{"HTTPS_PROXY"}, CommandPrefix: []string{"/usr/bin/env", "--"}, Cwd: "/srv/work",
		Shell: "/bin/bash", User: "alice", RuntimeDir: "/run/keryx/work",
		Validate: &events.TargetCheck{Command: []string{"test", "-d", "/srv/work"}, TimeoutMS: 1500},
		Approval: &events.ApprovalPolicy{Default: events.ApprovalOnRequest, Rules: []events.ApprovalRule{
			{ArgvPrefix: []string{"git", "push"}, Decision: events.ApprovalAlways},
		}},
		Exclusive: true, OnLeaseLoss: events.OnLeaseLossKeep,
		Limits: &events.TargetLimits{CPUMilli: 1500, MemoryBytes: 536870912, PIDs: 256, BestEffort: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("target (-want +got):\n%s", d)
	}
}

func TestParse_names_file_line_and_column_of_what_is_wrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, at, says string }{
		"nothing":                   {"", "1:1", "empty"},
		"only a comment":            {"# a\n", "", "no target"},
		"not a mapping":             {"- a\n", "1:1", "this is a list"},
		"broken syntax":             {"name: work\nenv_unset: [A\n", "2:", "not found"},
		"an unknown key":            {"name: work\nlabel: x\n", "2:1", `unknown key "label"`},
		"an unknown key below":      {"name: work\nlimits:\n  memory: 1\n", "3:3", `unknown key "memory"`},
		"a key twice":               {"name: work\nname: work\n", "2:1", "already defined"},
		"a number for text":         {"name: work\ncwd: 1\n", "2:6", "this is a number (quote it to make it text); text expected"},
		"a number for a variable":   {"name: work\nenv_set:\n  PORT: 80\n", "3:9", "quote it"},
		"true for text":             {"name: true\n", "1:7", "this is true or false"},
		"text for true":             {"name: work\nexclusive: \"yes\"\n", "2:12", "this is text; true or false expected"},
		"text for a number":         {"name: work\nlimits: {pids: \"9\"}\n", "2:16", "this is text; a whole number expected"},
		"a fraction for a whole":    {"name: work\nlimits: {pids: 1.5}\n", "2:16", "a whole number expected"},
		"a negative limit":          {"name: work\nlimits: {cpu: -1}\n", "2:15", "must not be negative"},
		"a number too large":        {"name: work\nlimits: {pids: 18446744073709551615}\n", "2:16", "too large"},
		"text for a list":           {"name: work\nenv_unset: MAIL\n", "2:12", "this is text; a list expected"},
		"a list for keys":           {"name: work\nvalidate: [true]\n", "2:11", "this is a list; keys with values expected"},
		"no value":                  {"name: work\ncwd:\n", "2:", "there is no value; text expected"},
		"a number for a time":       {"name: work\nvalidate: {command: [x], timeout: 10}\n", "2:35", `a time such as "10s"`},
		"a time that is none":       {"name: work\nvalidate: {command: [x], timeout: soon}\n", "2:35", `"soon" is not a time`},
		"a negative time":           {"name: work\nvalidate: {command: [x], timeout: -1s}\n", "2:35", "not a time"},
		"an alias":                  {"name: &n work\nkind: *n\n", "1:", "an anchor"},
		"two documents":             {"name: work\n---\nname: play\n", "3:1", "second document"},
		"a bad name":                {"kind: terminal\nname: Work\n", "2:7", ""},
		"no name":                   {"kind: terminal\n", "1:1", ""},
		"a relative directory":      {"name: work\ncwd: srv\n", "2:6", "must be absolute"},
		"a bad variable to unset":   {"name: work\nenv_unset: [A, B=1]\n", "2:16", "must not be empty"},
		"a bad approval":            {"name: work\napproval:\n  default: never\n  rules:\n    - {argv_prefix: [rm], decision: maybe}\n", "5:37", "never, always or on_request"},
		"a rule without a prefix":   {"name: work\napproval:\n  default: never\n  rules:\n    - {decision: never}\n", "5:7", "needs a prefix"},
		"an approval without":       {"name: work\napproval: {rules: []}\n", "2:11", "never, always or on_request"},
		"exclusive and per session": {"name: work\ncwd: /srv\nexclusive: true\nper_session: true\n", "4:14", "not both"},
		"a long runtime directory":  {"name: work\nruntime_dir: /" + strings.Repeat("a", 90) + "\n", "2:14", "room for a socket"},
		"a bad word":                {"name: work\non_lease_loss: ask\n", "2:16", "keep or kill"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := targetfile.Parse("work.yaml", []byte(c.text))
			var e *targetfile.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if want := "work.yaml:" + c.at; c.at != "" && !strings.HasPrefix(e.Error(), want) || !strings.Contains(e.Message, c.says) {
				t.Errorf("got %q, want it at %s with %q", e, c.at, c.says)
			}
		})
	}
}

func TestRead_wants_a_command_prefix_that_can_be_run(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for command, says := range map[string]string{
		"/usr/bin/env": "", plain: "not an executable", dir: "not an executable", dir + "/none": "no such file",
	} {
		path := filepath.Join(t.TempDir(), "t.yaml")
		write(t, path, fmt.Sprintf("name: work\ncommand_prefix: [%s]\n", command))
		_, err := targetfile.Read(path)
		switch {
		case says == "" && err != nil:
			t.Errorf("%s: %v", command, err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), path+":2:18: ")):
			t.Errorf("%s: got %v", command, err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("name: &a x\nenv_set: {<<: *a}\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		spec, err := targetfile.Parse("x", text)
		if e := (*targetfile.Error)(nil); err != nil && !errors.As(err, &e) {
			t.Errorf("an error without a place: %v", err)
		}
		if err == nil && spec.Name.Validate() != nil {
			t.Errorf("took %q", spec.Name)
		}
	})
}
