package process_test

import (
	"os"
	"testing"
	"time"

	"keryx/internal/process"
)

// TestWhatIsStoppedAfterItsLeaderMayStillWrite: a service in the background that says
// goodbye when it is told to end must not die of SIGPIPE before it has put things in order.
func TestWhatIsStoppedAfterItsLeaderMayStillWrite(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/in-order"
	p, err := process.Start(t.Context(), process.Spec{Env: env(), Argv: sh(
		`(trap 'echo goodbye; echo goodbye >&2; sleep 0.2; echo again; touch ` + file + `; exit 0' TERM; echo up; while :; do sleep 0.05; done) & sleep 0.1; exit 0`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := wait(t, p, 10*time.Second); got.Code != 0 {
		t.Errorf("exit is %+v", got)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error("it did not come to put things in order")
	}
}

// TestABackgroundServiceWritesAsMuchAsItLikes: while the leader runs its output is read, also
// when whoever takes it is slow, and the service sees neither an end nor a signal.
func TestABackgroundServiceWritesAsMuchAsItLikes(t *testing.T) {
	t.Parallel()
	total := 0
	p, err := process.Start(t.Context(), process.Spec{
		Env: env(), Argv: sh(`(head -c 3000000 /dev/zero; echo $? >&2) & wait`),
		Output: func(s process.Stream, b []byte) {
			if s == process.Stdout {
				total += len(b)
			} else if string(b) != "0\n" {
				t.Errorf("it ended with %q", b)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := wait(t, p, 20*time.Second); got.Code != 0 || total != 3_000_000 {
		t.Errorf("exit is %+v after %d bytes", got, total)
	}
}
