package setup_test

import (
	"errors"
	"strings"
	"testing"

	"keryx/internal/setup"
)

const whole = `name: Hello
version: "1"
source: example.org/hello
setup: {command: [bin/setup], timeout: 1m, needs: [tar]}
targets:
  - {name: hello, cwd: /tmp, command_prefix: [/usr/bin/env]}
commands:
  - {name: hello, help: say hello, target: hello, command: [bin/hello]}
default_enabled: true
`

func TestParseManifestReadsEveryField(t *testing.T) {
	t.Parallel()
	m, err := setup.ParseManifest([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	p := m.Package("/srv/hello", nil)
	if p.Name != "Hello" || p.Setup.TimeoutMS != 60_000 || p.Targets[0].Cwd != "/tmp" || p.Commands[0].Help != "say hello" || !p.DefaultEnabled {
		t.Errorf("package is %+v", p)
	}
}

func TestParseManifestNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, from, to, says string }{
		{"an unknown key", "version:", "verson:", "[2:1]"},
		{"a value of the wrong type", "default_enabled: true", "default_enabled: often", "[9:18]"},
		{"no name", "name: Hello\n", "", "name: is needed"},
		{"a name without letters", "name: Hello\n", "name: '---'\n", "has no letter"},
		{"no source", "source: example.org/hello\n", "", "source: is needed"},
		{"a name on two lines", "name: Hello\n", "name: \"a\\nb\"\n", "on one line"},
		{"an empty command", "[bin/setup]", "[]", "setup.command"},
		{"a command outside", "[bin/setup]", "[../setup]", "leads out"},
		{"a negative timeout", "timeout: 1m", "timeout: -1m", "setup.timeout"},
		{"a timeout without an end", "timeout: 1m", "timeout: 48h", "setup.timeout"},
		{"a path as a need", "[tar]", "[/bin/tar]", "setup.needs[0]"},
		{"a malformed target", "name: hello, cwd", "name: Hello, cwd", "targets[0].name"},
		{"a malformed command name", "name: hello, help", "name: /hello, help", "commands[0].name"},
		{"a command without help", "help: say hello", "help: ''", "commands[0].help"},
		{"an empty file", whole, "  \n", "empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := setup.ParseManifest([]byte(strings.Replace(whole, c.from, c.to, 1)))
			if !errors.Is(err, setup.ErrManifest) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("name: [\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := setup.ParseManifest(b)
		if err == nil && setup.Normalise(m.Name) == "" {
			t.Errorf("a manifest without a usable name was taken: %q", b)
		}
	})
}

func TestNormaliseMakesNamesComparable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Hello World": "hello-world", "hello_world": "hello-world", "--a..B--": "a-b", "ü": "", "a" + strings.Repeat("-", 80) + "b": "a-b",
	} {
		if got := setup.Normalise(name); got != want {
			t.Errorf("Normalise(%q) is %q, want %q", name, got, want)
		}
	}
}
