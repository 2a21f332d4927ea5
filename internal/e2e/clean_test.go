package e2e_test

import (
	"strings"
	"testing"
	"time"
)

func TestCase_F1_NoCommandFindsTheExecutorsSecrets(t *testing.T) {
	t.Parallel()
	secrets := []string{"BUS_TOKEN=tok-abc123", "NATS_CREDS=/x"}
	const script = "env; tr '\\0' '\\n' < /proc/self/environ; tr '\\0' '\\n' < /proc/$PPID/environ; echo done\n"
	check := func(t *testing.T, p *process) {
		t.Helper()
		if code := p.exit(30 * time.Second); code != 0 {
			t.Errorf("exit %d", code)
		}
		out := p.stdout.String()
		if !strings.Contains(out, "done") || strings.Contains(out, "tok-abc123") || strings.Contains(out, "NATS_CREDS") {
			t.Errorf("the command printed %q", out)
		}
	}
	t.Run("by an executor", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.serving()
		b.startIn(secrets, "", "executor", "--url", b.url(), "--creds", b.creds("ex"))
		check(t, b.start(script, "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio"))
	})
	t.Run("by all in one process", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		check(t, b.startIn(secrets, script, "bus", "up", "--dir", b.store()))
	})
}
