package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// recordOf reads the record of a session by its key.
func (b *bench) recordOf(key string) (out []event) {
	b.t.Helper()
	for line := range strings.Lines(b.run("bus", "replay", key, "--dir", b.store(), "--json")) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.t.Fatalf("line %q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

func TestCase_A1_TheEndOfAJobGoesToItsSessionWhateverIsOnScreen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
	for _, key := range []string{"web:1", "web:2"} {
		first := b.start("echo first\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio", "--key", key)
		if code := first.exit(30 * time.Second); code != 0 {
			t.Fatalf("the first turn of %s exited %d", key, code)
		}
	}
	other := len(b.recordOf("web:2"))
	b.start("", "bus", "replay", "web:2", "--follow", "--dir", b.store()) // the only one who looks
	b.run("bus", "exec", "web:1", "--target", "local", "--background", "--dir", b.store(), "--", "sh", "-c", "sleep 2; echo done-A")
	b.await("the end to be told", 30*time.Second, func() bool { return count(b.recordOf("web:1"), "continuation.queued") == 2 })
	b.away(2 * time.Second)
	jobs := 0
	for _, e := range b.recordOf("web:1") {
		if e.Type == "keryx.continuation.queued.v1" && strings.Contains(string(e.Data), `"job_exit"`) {
			jobs++
		}
	}
	if jobs != 1 {
		t.Errorf("%d ends were told to the session", jobs)
	}
	if got := len(b.recordOf("web:2")); got != other {
		t.Errorf("the other session's record grew from %d to %d events", other, got)
	}
}
