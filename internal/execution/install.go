package execution

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"keryx/events"
	"keryx/internal/process"
	"keryx/internal/setup"
	"keryx/internal/setup/bundle"
)

// install is one run of a setup, from its order to its last report.
type install struct {
	installer *installer
	plan      events.SetupPlan
	once      sync.Once
	cancelled chan struct{}
}

func (i *install) cancel() { i.once.Do(func() { close(i.cancelled) }) }

// setupPath is where a setup's programs are looked up.
const setupPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// do runs the setup and reports its end. What it made is taken away when the bus says that
// it does not count; when nobody knows, the next start of the executor looks at the log.
func (i *install) do(ctx context.Context) {
	x := i.installer
	log := x.service.cfg.Logger.With("run", i.plan.Run, "package", i.plan.Key)
	r := events.ReportSetupEnded{Run: i.plan.Run}
	place, err := x.prepare(ctx, i.plan)
	if err == nil {
		r, err = i.run(ctx, place)
	}
	if err != nil {
		r.Code, r.Message = reasonOf(err)
		r.Path = ""
	}
	if place != nil {
		err = place.clear()
	}
	what := x.report(ctx, r)
	if place != nil {
		err = errors.Join(err, place.close(what))
	}
	signal(x.changed)
	if err != nil {
		log.Error("tidy up after a setup", "error", err)
	}
	log.Info("setup ended", "kept", what == fateKeep, "code", r.Code)
}

// reasonOf says why a run failed.
func reasonOf(err error) (events.Code, string) {
	if changed, ok := errors.AsType[*bundle.ChangedError](err); ok {
		return events.CodeRevisionChanged, changed.Error()
	}
	if e, ok := errors.AsType[*events.Error](err); ok {
		return e.Code, e.Message
	}
	return events.CodeLaunchFailed, err.Error()
}

// check refuses a plan that is not of this executor, or not what it says it is.
func (x *installer) check(plan events.SetupPlan) error {
	p := x.service.bus.Principal()
	switch {
	case x.home == "":
		return events.Errorf(events.CodeTargetUnsupported, "this executor installs no packages")
	case plan.Revision != setup.PlanRevision(plan):
		return events.Errorf(events.CodeRevisionChanged, "the plan is not of the revision %s", plan.Revision)
	case plan.Home != x.home || plan.Profile != p.Profile || plan.Executor != p.Name:
		return events.Errorf(events.CodeRevisionChanged, "the plan is of %s in profile %s with home %s", plan.Executor, plan.Profile, plan.Home)
	}
	t, err := x.service.tenants.find(plan.Target)
	if err != nil {
		return err
	}
	return t.holds()
}

// holds returns nil while the target's lease can be trusted.
func (t *tenancy) holds() error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.held == nil || !t.held.Valid() {
		return notHeld(t.name)
	}
	return nil
}

// run runs the setup in its place.
func (i *install) run(ctx context.Context, at *installPlace) (events.ReportSetupEnded, error) {
	r := events.ReportSetupEnded{Run: i.plan.Run}
	if err := bundle.Copy(i.plan.Dir, at.files(), i.plan.Files, at.account.switches() != nil); err != nil {
		return r, err
	}
	if err := missing(i.plan.Setup.Needs); err != nil {
		return r, err
	}
	select { // the last moment before anything runs
	case <-i.cancelled:
		return r, errStopped
	default:
	}
	if err := i.installer.check(i.plan); err != nil {
		return r, err
	}
	end, tail, err := i.launch(ctx, at)
	if err != nil {
		return r, err
	}
	r.End = &events.SetupEnd{
		ExitCode: end.Code, Signal: end.Signal, TimedOut: end.TimedOut, DurationMS: end.Duration.Milliseconds(),
		Cleanup: end.Cleanup, LeftPIDs: end.LeftPIDs,
	}
	if err := failure(i.plan, end, tail); err != nil {
		return r, err
	}
	r.Path, err = at.complete()
	return r, err
}

// missing refuses a setup whose needs are not there, before it has changed anything.
func missing(needs []string) error {
	for _, need := range needs {
		found := false
		for dir := range strings.SplitSeq(setupPath, ":") {
			if _, err := exec.LookPath(filepath.Join(dir, need)); err == nil {
				found = true
				break
			}
		}
		if !found {
			return events.Errorf(events.CodeLaunchFailed, "the setup needs %q, which is not in %s", need, setupPath)
		}
	}
	return nil
}

// failure says why a setup that ran did not succeed; nil when it did.
func failure(plan events.SetupPlan, end process.Exit, tail string) error {
	switch {
	case end.TimedOut:
		return events.Errorf(events.CodeTimeout, "the setup did not end within %s", time.Duration(plan.Setup.TimeoutMS)*time.Millisecond)
	case end.Stopped:
		return events.Errorf(events.CodeSetupFailed, "the setup was stopped")
	case end.Cleanup == events.CleanupLeft:
		return events.Errorf(events.CodeSetupFailed, "the setup left processes that could not be ended: %v", end.LeftPIDs)
	case end.Signal != "":
		return events.Errorf(events.CodeSetupFailed, "the setup was ended by %s%s", end.Signal, tail)
	case end.Code != 0:
		return events.Errorf(events.CodeSetupFailed, "the setup exited %d%s", end.Code, tail)
	}
	return nil
}

// launch runs the command to its end. tail is the last line that it wrote to stderr.
func (i *install) launch(ctx context.Context, at *installPlace) (process.Exit, string, error) {
	x, s := i.installer, i.installer.service
	told, tell, err := os.Pipe()
	if err != nil {
		return process.Exit{}, "", fmt.Errorf("open the pipe for progress: %w", err)
	}
	spool := newSpool(ring{dir: s.cfg.SpoolDir, size: s.cfg.SpoolBytes, free: s.cfg.Free}, process.Streams(false), s.cfg.Logger)
	defer spool.close()
	last := &lastLine{}
	spec := i.spec(at)
	spec.Extra = []*os.File{tell}
	spec.Output = func(stream process.Stream, b []byte) {
		spool.write(stream, b)
		if stream == process.Stderr {
			last.write(b)
		}
	}
	proc, err := process.Start(context.WithoutCancel(ctx), spec)
	closed := tell.Close()
	if err := errors.Join(err, closed); err != nil {
		return process.Exit{}, "", errors.Join(events.Errorf(events.CodeLaunchFailed, "%v", err), told.Close())
	}
	var helping sync.WaitGroup
	helping.Go(func() { i.watch(ctx, proc) })
	report := newReporter(x, i.plan.Run)
	read := make(chan struct{})
	helping.Go(func() { defer close(read); readProgress(told, report) })
	helping.Go(func() { report.tell(ctx, read) })
	helping.Go(func() { i.send(ctx, spool) })
	end := proc.Wait()
	spool.end()
	// What holds the pipe still was not ended: it is not waited for.
	closed = told.Close()
	helping.Wait()
	return end, last.text(), closed
}

// spec says what to run: nothing of this executor's own environment gets in.
func (i *install) spec(at *installPlace) process.Spec {
	argv := append([]string(nil), i.plan.Setup.Command...)
	if strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(at.files(), argv[0])
	}
	return process.Spec{
		Argv: argv, Dir: at.files(), User: at.account.switches(), Timeout: time.Duration(i.plan.Setup.TimeoutMS) * time.Millisecond,
		Mark: "KERYX_SETUP_RUN=" + string(i.plan.Run), Groups: i.installer.service.groups, Group: "setup-" + string(i.plan.Run),
		Env: []string{
			"PATH=" + setupPath, "LANG=C.UTF-8", "HOME=" + at.home(), "TMPDIR=" + at.tmp(),
			"KERYX_SETUP_RUN=" + string(i.plan.Run), "KERYX_SETUP_PROGRESS_FD=3", "KERYX_SETUP_OUT=" + at.out(),
			"KERYX_PACKAGE=" + string(i.plan.Key), "KERYX_PACKAGE_VERSION=" + i.plan.Version, "KERYX_PACKAGE_DIR=" + at.files(),
			"KERYX_PROFILE=" + string(i.plan.Profile), "KERYX_TARGET=" + string(i.plan.Target),
		},
	}
}

// watch stops the tree when the run is cancelled, and at the latest when nobody can be
// told of its end any more.
func (i *install) watch(ctx context.Context, proc *process.Process) {
	select {
	case <-proc.Done():
		return
	case <-i.cancelled:
	case <-ctx.Done():
	}
	grace := stopGrace
	if err := proc.Stop(&grace); err != nil {
		i.installer.service.cfg.Logger.Warn("stop a setup", "run", i.plan.Run, "error", err)
	}
}

// send brings what the setup writes to the bus, as an exec's output goes there.
func (i *install) send(ctx context.Context, from *spool) {
	s := i.installer.service
	out := newSender(s.bus, from, events.SessionID(i.plan.Run), events.ExecID(i.plan.Run), s.cfg.Logger)
	err := out.run(ctx)
	if err == nil {
		_, err = out.settle(ctx)
	}
	if err != nil {
		s.cfg.Logger.Error("send the log of a setup", "run", i.plan.Run, "error", err)
	}
}

// readProgress reads lines of progress until the pipe ends. What cannot be read is
// counted; it harms nothing.
func readProgress(from io.Reader, to *reporter) {
	in := bufio.NewReaderSize(from, setup.MaxLine+1)
	for {
		line, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			p, bad := setup.ParseLine(line)
			if long || bad != nil {
				to.unreadable()
			} else {
				to.told(p)
			}
		}
		if err != nil { // its end, or that nobody waits any more
			return
		}
	}
}

// lastLine remembers the end of what was written.
type lastLine struct {
	mu   sync.Mutex
	tail []byte
}

// keptTail is as much of a last line as a message shows.
const keptTail = 400

func (l *lastLine) write(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail, b...)
	if over := len(l.tail) - 2*keptTail; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
}

func (l *lastLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.tail), ""))
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	if text == "" {
		return ""
	}
	return ": " + text[max(0, len(text)-keptTail):]
}

// exists reports whether there is something at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
