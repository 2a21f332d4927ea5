package execution_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keryx/events"
	"keryx/internal/execution"
	"keryx/internal/redact"
)

// secretsOf makes a file of secrets.
func secretsOf(t *testing.T, values ...string) (path string, file *redact.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), redact.FileName)
	for i, v := range values {
		if err := redact.Add(path, fmt.Sprint("s", i), []byte(v), time.Now()); err != nil {
			t.Fatalf("add secret: %v", err)
		}
	}
	file, err := redact.Open(path, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatalf("open secrets: %v", err)
	}
	return path, file
}

// TestCase_K4_ASecretInTwoWritesReachesNoBus splits a secret at each of its 11 points, the
// parts 60 ms apart, on stdout, stderr and a terminal.
func TestCase_K4_ASecretInTwoWritesReachesNoBus(t *testing.T) {
	t.Parallel()
	const secret = "tok-3f9a8b7c"
	_, file := secretsOf(t, secret)
	b := newBus(t)
	serve(t, b, execution.Config{Secrets: file})
	type run struct {
		name, stream string
		order        events.StartOrder
	}
	var runs []run
	for i := 1; i < len(secret); i++ {
		for stream, redirect := range map[string]string{"stdout": "", "stderr": " >&2", "pty": ""} {
			spec := sh(fmt.Sprintf("printf 'before %%s' '%s'%s; sleep 0.06; printf '%%s after' '%s'%s", secret[:i], redirect, secret[i:], redirect))
			if stream == "pty" {
				spec.PTY = &events.PTYSize{Rows: 24, Cols: 80}
			}
			runs = append(runs, run{fmt.Sprintf("%s at %d", stream, i), stream, b.start(spec)})
		}
	}
	const want = "before [redacted] after"
	for _, r := range runs {
		ended := b.exited(r.order)
		for _, s := range ended.Streams {
			switch {
			case s.Name != r.stream && s.Bytes+s.Redacted != 0:
				t.Errorf("%s: there is something on %s", r.name, s.Name)
			case s.Name == r.stream && (s.Redacted != 1 || s.Bytes != int64(len(want)) || s.SHA256 != sum(want) || s.MissingBytes != 0):
				t.Errorf("%s: %+v", r.name, s)
			}
		}
	}
	b.update(func() {
		for _, c := range b.chunks {
			if bytes.Contains(c.data, []byte(secret)) {
				t.Errorf("a chunk holds the secret: %q", c.data)
			}
		}
	})
}

func TestOfTwoSecretsOneMayBeginTheOtherAndTheRestIsGivenOutAtTheEnd(t *testing.T) {
	t.Parallel()
	_, file := secretsOf(t, "tok-3f9a8b7c", "tok-3f9a8b7c-long-one")
	b := newBus(t)
	serve(t, b, execution.Config{Secrets: file})
	for _, c := range []struct{ script, want string }{
		{`printf 'a tok-3f9a8b7c-lo'; sleep 0.05; printf 'ng-one b'`, "a [redacted] b"},
		{`printf 'a tok-3f9a8b7c-lo'; sleep 0.05; printf 'st b'`, "a [redacted]-lost b"},
		{`printf 'a tok-3f9a8b7c'`, "a [redacted]"},
		{`printf 'a tok-3f9'`, "a tok-3f9"},
		{`printf 'other\0bytes \377 stay'`, "other\x00bytes \xff stay"},
	} {
		o := b.start(sh(c.script))
		if s := b.exited(o).Streams[0]; s.SHA256 != sum(c.want) {
			t.Errorf("%s: %+v, want %q", c.script, s, c.want)
		}
	}
}

// TestAPromptThatCouldBeginASecretIsShownAfterAMoment: somebody waits for it.
func TestAPromptThatCouldBeginASecretIsShownAfterAMoment(t *testing.T) {
	t.Parallel()
	_, file := secretsOf(t, "token: abcdef")
	b := newBus(t)
	serve(t, b, execution.Config{Secrets: file})
	spec := sh(`printf 'token: '; read -r line; printf 'abcdef'`)
	spec.PTY = &events.PTYSize{Rows: 24, Cols: 80}
	o := b.start(spec)
	b.until("the prompt", func() bool { return len(b.chunks) > 0 && bytes.Contains(b.chunks[0].data, []byte("token: ")) })
	b.typing(o, events.TTYFrame{Data: []byte("x\r")})
	b.exited(o)
	b.update(func() {
		var all []byte
		for _, c := range b.chunks {
			all = append(all, c.data...)
		}
		if !strings.HasPrefix(string(all), "token: ") {
			t.Errorf("shown is %q", all)
		}
	})
}

// TestASecretThatIsRegisteredWhileACommandRunsIsHiddenSoon adds one to the file.
func TestASecretThatIsRegisteredWhileACommandRunsIsHiddenSoon(t *testing.T) {
	t.Parallel()
	path, file := secretsOf(t, "another-one")
	b := newBus(t)
	serve(t, b, execution.Config{Secrets: file})
	o := b.start(sh(`while :; do echo tok-3f9a8b7c; sleep 0.05; done`))
	b.started(o)
	if err := redact.Add(path, "late", []byte("tok-3f9a8b7c"), time.Now()); err != nil {
		t.Fatalf("add secret: %v", err)
	}
	b.until("a mask", func() bool {
		for _, c := range b.chunks {
			if bytes.Contains(c.data, []byte(redact.Mask)) {
				return true
			}
		}
		return false
	})
	b.tell(events.ExecStop, events.StopOrder{Session: o.Session, Exec: o.Request.Exec})
	if s := b.exited(o).Streams[0]; s.Redacted == 0 {
		t.Errorf("%+v", s)
	}
}
