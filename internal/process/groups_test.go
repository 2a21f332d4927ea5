package process_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keryx/events"
	"keryx/internal/process"
)

// groups opens control groups of an owner that no other test has. Where there are none,
// what is tested cannot be had.
func groups(t *testing.T) *process.Groups {
	t.Helper()
	g, err := process.OpenGroups("test-"+events.NewID(), "one")
	if errors.Is(err, process.ErrNoGroups) {
		t.Skipf("this system has no control groups to write: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// ways are the two of finding a tree: what to set, and what its end proves.
var ways = map[string]struct {
	prepare func(*testing.T, *process.Spec)
	want    events.Cleanup
}{
	"in a group": {
		prepare: func(t *testing.T, s *process.Spec) {
			t.Helper()
			s.Groups, s.Group = groups(t), "tree"
		},
		want: events.CleanupProved,
	},
	"by search": {prepare: func(*testing.T, *process.Spec) {}, want: events.CleanupSwept},
}

func TestCase_D1_NothingSurvivesTheLeaderEitherWay(t *testing.T) {
	t.Parallel()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := process.Spec{Argv: sh(`sleep 301 & echo $!
(setsid sh -c 'echo $$; exec sleep 302' &) ; (setsid sh -c "sh -c 'echo \$\$; exec sleep 303' &" &) ; sleep 0.3; exit 0`)}
			way.prepare(t, &spec)
			p, o := start(t, spec)
			if err := p.Stop(ptr(time.Second)); err != nil {
				t.Fatal(err)
			}
			if got := wait(t, p, 2*time.Second); got.Cleanup != way.want || len(got.LeftPIDs) > 0 {
				t.Errorf("exit is %+v", got)
			}
			for _, pid := range strings.Fields(o.stdout()) {
				gone(t, pid)
			}
		})
	}
}

func TestCase_D6_TheStopLadderInAGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grace    *time.Duration
		from, to time.Duration
	}{
		"a second of grace":     {ptr(time.Second), 700 * time.Millisecond, 1300 * time.Millisecond},
		"no grace at all":       {ptr(0), 0, 300 * time.Millisecond},
		"an omitted grace is 5": {nil, 4700 * time.Millisecond, 5300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := start(t, process.Spec{Argv: sh(`trap "" TERM; echo ready; sleep 300`), Groups: groups(t), Group: "tree"})
			o.waitFor(t, "ready")
			began := time.Now()
			if err := p.Stop(c.grace); err != nil {
				t.Fatal(err)
			}
			got := wait(t, p, 10*time.Second)
			if took := time.Since(began); took < c.from || took > c.to {
				t.Errorf("took %v, want %v to %v", took, c.from, c.to)
			}
			if got.Signal != "SIGKILL" || !got.Stopped || got.Cleanup != events.CleanupProved {
				t.Errorf("exit is %+v", got)
			}
		})
	}
}

func TestTermReachesTheWholeGroup(t *testing.T) {
	t.Parallel()
	p, o := start(t, process.Spec{
		Argv:   sh(`env -i setsid sh -c 'trap "echo far; exit" TERM; echo ready; while :; do sleep 0.05; done' & trap 'wait; exit 4' TERM; wait`),
		Groups: groups(t), Group: "tree",
	})
	o.waitFor(t, "ready")
	if err := p.Stop(nil); err != nil {
		t.Fatal(err)
	}
	got := wait(t, p, 4*time.Second)
	if got.Code != 4 || got.Cleanup != events.CleanupProved || !strings.Contains(o.stdout(), "far") {
		t.Errorf("exit is %+v, stdout %q", got, o.stdout())
	}
}

func TestLeaveKeepsTheGroup(t *testing.T) {
	t.Parallel()
	owner := "test-" + events.NewID()
	g, err := process.OpenGroups(owner, "one")
	if errors.Is(err, process.ErrNoGroups) {
		t.Skipf("this system has no control groups to write: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, _ := run(t, process.Spec{Argv: sh("setsid sleep 30 >/dev/null 2>&1 &"), Groups: g, Group: "tree", Leave: true}, 5*time.Second)
	if got.Cleanup != events.CleanupLeft || len(got.LeftPIDs) != 1 {
		t.Fatalf("exit is %+v", got)
	}
	if err := unix.Kill(got.LeftPIDs[0], 0); err != nil {
		t.Errorf("what was left does not run: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Errorf("close while something runs: %v", err)
	}
	next, err := process.OpenGroups(owner, "two")
	if err != nil {
		t.Fatal(err)
	}
	if names, err := next.EmptyFormer(); err != nil || !slices.Equal(names, []string{"tree"}) {
		t.Errorf("emptied %q, %v", names, err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

func TestAGroupThatCannotBeMadeIsNoHindrance(t *testing.T) {
	t.Parallel()
	got, _ := run(t, process.Spec{Argv: sh("exit 3"), Groups: groups(t), Group: "no/name"}, 5*time.Second)
	if got.Code != 3 || got.Cleanup != events.CleanupSwept {
		t.Errorf("exit is %+v", got)
	}
	if _, err := process.OpenGroups("a/b", "c"); !errors.Is(err, process.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestALaunchErrorInAGroupLeavesNoGroup(t *testing.T) {
	t.Parallel()
	g := groups(t)
	for range 2 { // the name is free again
		_, err := process.Start(t.Context(), process.Spec{Argv: []string{"/nowhere/none"}, Groups: g, Group: "tree"})
		if _, ok := errors.AsType[*process.LaunchError](err); !ok {
			t.Errorf("got %v", err)
		}
	}
	if got, _ := run(t, process.Spec{Argv: sh("true"), Groups: g, Group: "tree"}, 5*time.Second); got.Cleanup != events.CleanupProved {
		t.Errorf("exit is %+v", got)
	}
}

func TestARestartedOwnerEmptiesTheGroupsOfTheDead(t *testing.T) {
	t.Parallel()
	owner := "test-" + events.NewID()
	next, err := process.OpenGroups(owner, "next")
	if errors.Is(err, process.ErrNoGroups) {
		t.Skipf("this system has no control groups to write: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVar+"=doomed", "OWNER="+owner)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		pids = append(pids, lines.Text())
	}
	if names, err := next.EmptyFormer(); err != nil || len(names) != 0 {
		t.Errorf("a living instance was emptied: %q, %v", names, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	names, err := next.EmptyFormer()
	if err != nil || !slices.Equal(names, []string{"session.exec"}) {
		t.Errorf("emptied %q, %v", names, err)
	}
	if len(pids) != 2 {
		t.Errorf("pids are %q", pids)
	}
	for _, pid := range pids {
		gone(t, pid)
	}
	if names, err := next.EmptyFormer(); err != nil || len(names) != 0 {
		t.Errorf("emptied again: %q, %v", names, err)
	}
}

func TestCase_D5_ProcessOneReapsOrphansAndStealsNoStatus(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("unshare", "-rfp", "--mount-proc", os.Args[0])
	cmd.Env = append(os.Environ(), helperVar+"=process-1")
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil && strings.Contains(failed.String(), "unshare") {
		t.Skipf("no pid namespace can be made here: %s", failed.String())
	}
	var got reapReport
	if err := errors.Join(err, json.Unmarshal(out, &got)); err != nil {
		t.Fatalf("%v: %s", err, failed.String())
	}
	if got.Sevens != 300 || got.OthersSevens != 300 || got.Zombies > 2 || len(got.Failed) > 0 {
		t.Errorf("process 1 reports %+v", got)
	}
}

func TestInsideTellsCommandsFromTheirOwner(t *testing.T) {
	t.Parallel()
	in, o := start(t, process.Spec{Argv: sh("echo ready; sleep 300"), Groups: groups(t), Group: "tree"})
	o.waitFor(t, "ready")
	out, o := start(t, process.Spec{Argv: sh("echo ready; sleep 300")})
	o.waitFor(t, "ready")
	for pid, want := range map[int]bool{in.PID(): true, out.PID(): false, os.Getpid(): false} {
		if got, err := process.Inside(pid); got != want || err != nil {
			t.Errorf("process %d: %v, %v; want %v", pid, got, err, want)
		}
	}
	if _, err := process.Inside(1 << 30); err == nil {
		t.Error("a process that there is not was found")
	}
}
