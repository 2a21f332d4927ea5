package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/setup"
	"keryx/internal/setup/bundle"
)

// setups is a bench whose executor installs packages.
type setups struct {
	*bench
	op   *client.Conn
	home string
	dir  string // of the package
	ex   *process
	// instance is that of the executor that has the target.
	instance events.Instance
}

func newSetups(t *testing.T, script string) *setups {
	t.Helper()
	b := newBench(t)
	b.run("bus", "user", "add", "op", "--role", "operator", "--profile", "default", "--out", b.creds("op"), "--dir", b.store())
	b.serving()
	s := &setups{bench: b, op: b.connect("op"), home: filepath.Join(b.dir, "home"), dir: filepath.Join(b.dir, "package")}
	s.pack(script, time.Minute)
	s.executor()
	return s
}

// executor starts the executor and waits until its target is there.
func (s *setups) executor() {
	s.t.Helper()
	s.ex = s.start("", "executor", "--url", s.url(), "--creds", s.creds("ex"), "--home", s.home)
	ctx, cancel := context.WithTimeout(s.t.Context(), 40*time.Second)
	defer cancel()
	before := s.instance
	s.await("the target", 40*time.Second, func() bool {
		sel, err := s.op.SelectTarget(ctx, "local")
		s.instance = sel.Instance
		return err == nil && sel.Instance != before
	})
}

// pack writes a package whose setup is a shell script, and adds it.
func (s *setups) pack(script string, timeout time.Duration) {
	s.t.Helper()
	manifest := fmt.Sprintf("name: Thing\nversion: '1'\nsource: example.org/thing\nsetup: {command: [bin/setup], timeout: %s}\n", timeout)
	s.write(setup.ManifestName, manifest, 0o644)
	s.write("bin/setup", "#!/bin/sh\n"+script, 0o755)
	s.add()
}

func (s *setups) write(name, content string, mode os.FileMode) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		s.t.Fatal(err)
	}
}

func (s *setups) add() {
	s.t.Helper()
	p, err := bundle.Read(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.op.AddPackage(s.t.Context(), p, false); err != nil {
		s.t.Fatal(err)
	}
}

// consented plans a run and consents to it.
func (s *setups) consented() events.SetupAnswer {
	s.t.Helper()
	a, err := s.op.PlanSetup(s.t.Context(), events.PlanSetup{Package: "Thing", Target: "local"})
	if err == nil {
		_, err = s.op.ConsentSetup(s.t.Context(), events.ConsentSetup{Run: a.Run, Revision: a.Revision})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *setups) begin() events.RunID {
	s.t.Helper()
	a := s.consented()
	if _, err := s.op.RunSetup(s.t.Context(), a.Run, a.Revision); err != nil {
		s.t.Fatal(err)
	}
	return a.Run
}

// until watches a run until ok, and fails when it is over before.
func (s *setups) until(run events.RunID, ok func(events.SetupSummary) bool) events.SetupSummary {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 60*time.Second)
	defer cancel()
	last, err := s.op.WatchSetup(ctx, run, func(now events.SetupSummary) bool { return !ok(now) })
	if err != nil || !ok(last) {
		s.t.Fatalf("the run is %+v, %v\nexecutor: %s", last, err, s.ex.stderr)
	}
	return last
}

func (s *setups) ended(run events.RunID) events.SetupSummary {
	s.t.Helper()
	return s.until(run, func(now events.SetupSummary) bool { return now.State.Over() })
}

func (s *setups) view() events.PackageView {
	s.t.Helper()
	all, err := s.op.Packages(s.t.Context(), "")
	if err != nil || len(all) != 1 {
		s.t.Fatalf("packages are %+v, %v", all, err)
	}
	return all[0]
}

// ends counts the ends of a run on record.
func (s *setups) ends(run events.RunID) (n int) {
	s.t.Helper()
	page, err := s.op.Page(s.t.Context(), run.Scope(), 0, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, rec := range page.Records {
		switch rec.Type {
		case events.TypeSetupSucceeded, events.TypeSetupFailed, events.TypeSetupCancelled:
			n++
		}
	}
	return n
}

// left returns what runs below /proc with this text among its arguments.
func left(t *testing.T, text string) (found []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range dirs {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), text) {
			found = append(found, file+" "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

// rest says what is left of runs in the home: neither parts nor private copies.
func (s *setups) rest() (found []string) {
	s.t.Helper()
	for _, pattern := range []string{"setups/*", "packages/*/*.part"} {
		names, err := filepath.Glob(filepath.Join(s.home, pattern))
		if err != nil {
			s.t.Fatal(err)
		}
		found = append(found, names...)
	}
	return found
}

func TestCase_L1_ACancelledSetupIsNeitherInstalledNorEnabled(t *testing.T) {
	t.Parallel()
	mark := "31415" + strconv.Itoa(os.Getpid()%1000)
	s := newSetups(t, `echo '{"step":1,"total":3,"message":"fetch"}' >&3
touch "$KERYX_SETUP_OUT/fetched"
echo '{"step":2,"total":3,"message":"prepare"}' >&3
(setsid sleep `+mark+` &)
sleep 3
echo published > "$KERYX_SETUP_OUT/thing"
`)
	run := s.begin()
	s.until(run, func(now events.SetupSummary) bool { return now.Progress.Step == 2 })
	if _, err := s.op.CancelSetup(t.Context(), run, "not this one"); err != nil {
		t.Fatal(err)
	}
	end := s.ended(run)
	if end.State != events.SetupStateCancelled || end.End == nil || end.End.Cleanup == events.CleanupLeft {
		t.Errorf("the run is %+v, %+v", end, end.End)
	}
	if v := s.view(); v.Enabled || v.Installed != nil {
		t.Errorf("the package is %+v", v)
	}
	if found := left(t, mark); len(found) > 0 {
		t.Errorf("left are %v", found)
	}
	s.rounds(mark)
	s.pack(`echo yes > "$KERYX_SETUP_OUT/thing"`, time.Minute)
	end = s.ended(s.begin())
	if b, err := os.ReadFile(filepath.Join(end.Path, "thing")); err != nil || string(b) != "yes\n" {
		t.Errorf("after a new attempt there is %q, %v", b, err)
	}
}

// rounds cancels at random moments after the start.
func (s *setups) rounds(mark string) {
	s.t.Helper()
	n := killRounds(s.t) * 3
	for i := range n {
		run := s.begin()
		wait := time.NewTimer(time.Duration(rand.IntN(5000)) * time.Microsecond)
		<-wait.C
		if _, err := s.op.CancelSetup(s.t.Context(), run, "round"); err != nil {
			s.t.Fatal(err)
		}
		end := s.ended(run)
		if v := s.view(); end.State != events.SetupStateCancelled || v.Installed != nil || v.Enabled {
			s.t.Fatalf("round %d of %d: the run is %+v", i, n, end)
		}
	}
	if found := append(left(s.t, mark), s.rest()...); len(found) > 0 {
		s.t.Errorf("after %d rounds there are %v", n, found)
	}
}

func TestCase_L3_ASetupThatTakesTooLongIsEndedWithAllThatItStarted(t *testing.T) {
	t.Parallel()
	s := newSetups(t, "true")
	marker := filepath.Join(s.dir, "..", "marker-file-l3")
	mark := "2718" + strconv.Itoa(os.Getpid()%1000)
	s.pack(`sleep `+mark+`1 & (setsid sleep `+mark+`2 &) ; (sleep 2; touch `+marker+`) & sleep `+mark+`3`, time.Second)
	began := time.Now()
	end := s.ended(s.begin())
	if end.State != events.SetupStateFailed || end.Code != events.CodeTimeout || end.End == nil || !end.End.TimedOut || end.End.Cleanup == events.CleanupLeft {
		t.Errorf("the run is %+v, %+v", end, end.End)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	if found := left(t, mark); len(found) > 0 {
		t.Errorf("left are %v", found)
	}
	s.pack("true", time.Minute)
	if end := s.ended(s.begin()); end.State != events.SetupStateSucceeded {
		t.Errorf("the retry is %+v", end)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("what was ended has made its file")
	}
}

func TestCase_L4_EveryViewerSeesTheSnapshotFirstAndNoStepBack(t *testing.T) {
	t.Parallel()
	s := newSetups(t, `for i in 1 2 3 4 5 6 7 8 9 10; do
	echo "{\"step\":$i,\"total\":10,\"percent\":$((i*10))}" >&3
	sleep 0.4
done
`)
	a := s.consented()
	first := make(chan struct{}, 4)
	watch := func(c *client.Conn) []events.SetupSummary {
		var seen []events.SetupSummary
		_, err := c.WatchSetup(t.Context(), a.Run, func(now events.SetupSummary) bool {
			if seen = append(seen, now); len(seen) == 1 {
				first <- struct{}{}
			}
			return true
		})
		if err != nil {
			t.Error(err)
		}
		return seen
	}
	var viewers sync.WaitGroup
	all := make([][]events.SetupSummary, 4)
	view := func(i int) { viewers.Go(func() { all[i] = watch(s.connect("op")) }) }
	view(0) // before the first step
	<-first
	if _, err := s.op.RunSetup(t.Context(), a.Run, a.Revision); err != nil {
		t.Fatal(err)
	}
	s.until(a.Run, func(now events.SetupSummary) bool { return now.Progress.Step >= 4 })
	view(1)
	s.until(a.Run, func(now events.SetupSummary) bool { return now.Progress.Step >= 6 })
	view(2)
	s.ended(a.Run)
	view(3) // after the end
	viewers.Wait()
	for i, first := range []int{0, 40, 60, 100} {
		seen := all[i]
		if len(seen) == 0 || seen[0].Progress.Percent < first || (i == 0 && seen[0].State == events.SetupStateRunning) {
			t.Errorf("viewer %d saw %+v first", i, seen)
			continue
		}
		for j := 1; j < len(seen); j++ {
			if seen[j].Progress.Percent < seen[j-1].Progress.Percent || seen[j].Progress.Step < seen[j-1].Progress.Step {
				t.Errorf("viewer %d went from %+v to %+v", i, seen[j-1].Progress, seen[j].Progress)
			}
		}
		if last := seen[len(seen)-1]; last.State != events.SetupStateSucceeded || last.Progress.Percent != 100 {
			t.Errorf("viewer %d saw %+v last", i, last)
		}
	}
}

func TestCase_L5_WhatIsNotWhatWasReviewedIsNotRun(t *testing.T) {
	t.Parallel()
	s := newSetups(t, "true")
	marker := filepath.Join(s.bench.dir, "ran")
	script := "#!/bin/sh\ntouch " + marker + "\n"
	for name, change := range map[string]func(){
		"one byte":     func() { s.write("bin/setup", script+"#", 0o755) },
		"a file more":  func() { s.write("bin/more", "x", 0o644) },
		"another mode": func() { s.write("data", "x", 0o644); must(t, os.Chmod(filepath.Join(s.dir, "data"), 0o755)) },
		"a symlink": func() {
			target := filepath.Join(s.bench.dir, "evil")
			must(t, os.WriteFile(target, []byte(script), 0o755))
			must(t, os.Remove(filepath.Join(s.dir, "bin/setup")))
			must(t, os.Symlink(target, filepath.Join(s.dir, "bin/setup")))
		},
	} {
		must(t, os.RemoveAll(s.dir))
		s.write("data", "x", 0o644)
		s.pack("touch "+marker, time.Minute)
		a := s.consented()
		change()
		if _, err := s.op.RunSetup(t.Context(), a.Run, a.Revision); err != nil {
			t.Fatal(err)
		}
		if end := s.ended(a.Run); end.State != events.SetupStateFailed || end.Code != events.CodeRevisionChanged || end.End != nil {
			t.Errorf("%s: the run is %+v", name, end)
		}
		if _, err := os.Stat(marker); err == nil {
			t.Errorf("%s: the setup was run", name)
		}
	}
	// Consent is to the run's own revision, and no word of a client stands in for it.
	must(t, os.RemoveAll(s.dir))
	s.pack("touch "+marker, time.Minute)
	a, err := s.op.PlanSetup(t.Context(), events.PlanSetup{Package: "Thing", Target: "local"})
	must(t, err)
	for name, send := range map[string]struct {
		data any
		want events.Code
	}{
		"no consent":       {events.RunSetup{Run: a.Run, Revision: a.Revision}, events.CodeNoConsent},
		"another revision": {events.RunSetup{Run: a.Run, Revision: events.Revision(strings.Repeat("0", 64))}, events.CodeRevisionChanged},
		"approved: true":   {map[string]any{"run": a.Run, "revision": a.Revision, "approved": true}, events.CodeInvalid},
	} {
		if err := s.op.Do(t.Context(), events.CmdSetupRun, send.data, nil); events.CodeOf(err) != send.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the setup was run")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAKilledExecutorEndsItsSetupOnceAndTheRetryStartsClean(t *testing.T) {
	t.Parallel()
	s := newSetups(t, `echo one > "$KERYX_SETUP_OUT/thing"`)
	before := s.ended(s.begin())
	s.pack(`touch "$KERYX_SETUP_OUT/half"
echo '{"percent":50}' >&3
if [ -e `+s.bench.dir+`/go ]; then echo two > "$KERYX_SETUP_OUT/thing"; exit 0; fi
sleep 300`, time.Minute)
	run := s.begin()
	s.until(run, func(now events.SetupSummary) bool { return now.Progress.Percent == 50 })
	s.ex.kill()
	s.executor()
	end := s.ended(run)
	if end.State != events.SetupStateFailed || s.ends(run) != 1 {
		t.Errorf("the run is %+v with %d ends", end, s.ends(run))
	}
	if v := s.view(); v.Installed == nil || v.Installed.Run != before.Run {
		t.Errorf("installed is %+v", v.Installed)
	}
	if b, err := os.ReadFile(filepath.Join(filepath.Dir(before.Path), "current", "thing")); err != nil || string(b) != "one\n" {
		t.Errorf("the earlier version is %q, %v", b, err)
	}
	s.await("the home to be tidy", 20*time.Second, func() bool { return len(s.rest()) == 0 })
	must(t, os.WriteFile(filepath.Join(s.bench.dir, "go"), nil, 0o644))
	end = s.ended(s.begin())
	if b, err := os.ReadFile(filepath.Join(end.Path, "thing")); err != nil || string(b) != "two\n" {
		t.Errorf("after the retry there is %q, %v", b, err)
	}
}

func TestAKilledBusLosesNothingOfASetup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run("bus", "user", "add", "op", "--role", "operator", "--profile", "default", "--out", b.creds("op"), "--dir", b.store())
	bus := b.serving()
	s := &setups{bench: b, op: b.connect("op"), home: filepath.Join(b.dir, "home"), dir: filepath.Join(b.dir, "package")}
	s.pack(`echo '{"step":1,"total":2,"percent":30}' >&3
while [ ! -e `+b.dir+`/go ]; do sleep 0.05; done
echo '{"step":2,"total":2,"percent":90}' >&3
echo done > "$KERYX_SETUP_OUT/thing"`, time.Minute)
	s.executor()
	run := s.begin()
	s.until(run, func(now events.SetupSummary) bool { return now.Progress.Step == 1 })
	bus.kill()
	must(t, os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o644)) // it goes on, and ends, meanwhile
	b.serving()
	if v := s.until(run, func(now events.SetupSummary) bool { return now.Progress.Percent >= 30 }); v.Progress.Percent < 30 {
		t.Errorf("after the restart it is %+v", v.Progress)
	}
	end := s.ended(run)
	if end.State != events.SetupStateSucceeded || s.ends(run) != 1 {
		t.Errorf("the run is %+v with %d ends", end, s.ends(run))
	}
}

func TestACancelThatTheExecutorCannotHearStillWins(t *testing.T) {
	t.Parallel()
	s := newSetups(t, `while [ ! -e go ]; do sleep 0.05; [ -e `+t.TempDir()+` ] || exit 1; done`)
	run := s.begin()
	s.until(run, func(now events.SetupSummary) bool { return now.State == events.SetupStateRunning })
	must(t, s.ex.cmd.Process.Signal(syscall.SIGSTOP))
	if _, err := s.op.CancelSetup(t.Context(), run, "now"); err != nil {
		t.Fatal(err)
	}
	must(t, s.ex.cmd.Process.Signal(syscall.SIGCONT))
	if end := s.ended(run); end.State != events.SetupStateCancelled || s.ends(run) != 1 {
		t.Errorf("the run is %+v", end)
	}
}

// TestTheExamplePackageInstallsItsToolAndTheSessionThatWaitsGoesOn takes everything from
// the command line, in one process of `bus up` and its chat.
func TestTheExamplePackageInstallsItsToolAndTheSessionThatWaitsGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	home := filepath.Join(b.dir, "home")
	b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"), "--home", home)
	chat := b.start("echo first\n", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--creds", b.creds("sh"), "--stdio")
	if code := chat.exit(30 * time.Second); code != 0 {
		t.Fatalf("the first turn exited %d", code)
	}
	b.start("", "gateway-bridge", "--url", b.url(), "--creds", b.creds("sh"))
	bus := func(args ...string) string { return b.run("bus", append(args, "--dir", b.store())...) }
	bus("package", "add", filepath.Join("..", "..", "integrations", "greet-package"))
	plan := bus("setup", "plan", "Greet", "--for", "cli:local", "--json")
	_, rest, _ := strings.Cut(plan, `"revision":"`)
	revision, _, _ := strings.Cut(rest, `"`)
	out := bus("setup", "run", "Greet", "--for", "cli:local", "--revision", revision)
	if !strings.Contains(out, "1.2.0 installed in "+home) {
		t.Errorf("run says %q", out)
	}
	b.await("the word to the session, and its turn", 30*time.Second, func() bool {
		text := bus("replay", "cli:local")
		return strings.Contains(text, "Greet 1.2.0 is set up now") && strings.Count(text, "turn.ended") >= 2
	})
	if log := bus("setup", "log", "Greet"); !strings.Contains(log, "greet-1.2.0.tar.gz: OK") || !strings.Contains(log, "Hello, setup!") {
		t.Errorf("the log is %q", log)
	}
	bus("package", "enable", "Greet")
	b.await("the package's target", 30*time.Second, func() bool { return strings.Contains(bus("targets"), "greet") })
	early := b.start("", "bus", "exec", "cli:local", "--target", "greet", "--dir", b.store(), "--", "greet", "Ada")
	if code := early.exit(30 * time.Second); code == 0 || !strings.Contains(early.stderr.String(), "not_in_effect") {
		t.Errorf("before the next epoch: exit %d, %s", code, early.stderr)
	}
	bus("session", "reset", "cli:local", "--reason", "a tool was installed")
	ran := b.start("", "bus", "exec", "cli:local", "--target", "greet", "--dir", b.store(), "--", "greet", "Ada")
	if code := ran.exit(30 * time.Second); code != 0 || ran.stdout.String() != "Hello, Ada! This is greet 1.2.0.\n" {
		t.Errorf("exit %d, %q, %s", code, ran.stdout, ran.stderr)
	}
	bus("package", "disable", "Greet")
	b.await("the target to be withdrawn", 30*time.Second, func() bool { return !strings.Contains(bus("targets"), "greet") })
}
