package execution

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"keryx/events"
)

// sweep ends, on record, the runs of former instances, and takes away what they left. It
// ends with asking: nothing waits for it. Reports outlive asking.
func (x *installer) sweep(asking, working context.Context) {
	if x.home == "" {
		return
	}
	s := x.service
	var active events.Setups
	q := events.SetupList{Executor: s.bus.Principal().Name, Limit: 1000}
	if err := insist(asking, s.bus, s.cfg.Logger, events.CmdSetupList, q, &active); err != nil {
		if asking.Err() == nil {
			s.cfg.Logger.Error("ask for setups of former instances", "error", err)
		}
		return
	}
	for _, run := range active.Runs {
		if run.Instance != s.bus.Instance() {
			x.report(working, events.ReportSetupEnded{
				Run: run.Run, Code: events.CodeUnavailable, Message: "its executor ended; what it left running was ended",
			})
		}
	}
	if err := x.tidy(asking); err != nil && asking.Err() == nil {
		s.cfg.Logger.Error("tidy the home of packages", "error", err)
	}
}

// tidy takes away what no run owns any more, and makes the links agree with the log. What
// the bus does not know is left alone: the home may be another's.
func (x *installer) tidy(ctx context.Context) error {
	var list events.Packages
	if err := insist(ctx, x.service.bus, x.service.cfg.Logger, events.CmdPackageList, events.PackageList{}, &list); err != nil {
		return err
	}
	installed := make(map[string]events.RunID)
	for _, p := range list.Packages {
		if p.Installed != nil && p.Installed.Home == x.home {
			installed[string(p.Package.Key)] = p.Installed.Run
		}
	}
	var failed error
	for _, dir := range subdirectories(filepath.Join(x.home, setupsDir)) {
		failed = errors.Join(failed, x.discard(ctx, dir, filepath.Base(dir)))
	}
	for _, pack := range subdirectories(filepath.Join(x.home, packagesDir)) {
		current := installed[filepath.Base(pack)]
		for _, dir := range subdirectories(pack) {
			if run := strings.TrimSuffix(filepath.Base(dir), partSuffix); filepath.Base(dir) != string(current) {
				failed = errors.Join(failed, x.discard(ctx, dir, run))
			}
		}
		if current != "" && exists(filepath.Join(pack, string(current))) {
			failed = errors.Join(failed, pointTo(pack, string(current)))
		}
	}
	return failed
}

// discard removes what a run has left, if it is one that the bus knows and that does not
// go on.
func (x *installer) discard(ctx context.Context, dir, run string) error {
	if !events.IsULID(run) || x.goesOn(events.RunID(run)) {
		return nil
	}
	var view events.SetupView
	err := insist(ctx, x.service.bus, x.service.cfg.Logger, events.CmdSetupShow, events.ShowSetup{Run: events.RunID(run)}, &view)
	if errors.Is(err, events.ErrOf(events.CodeUnknownRun)) {
		x.service.cfg.Logger.Warn("left alone: no run of this bus", "directory", dir)
		return nil
	}
	if err != nil || view.Plan.Home != x.home || !view.State.Over() {
		return err
	}
	return removeTree(dir)
}

func (x *installer) goesOn(id events.RunID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.runs[id] != nil
}

// subdirectories returns the paths of the directories in a directory; none if it is not
// there.
func subdirectories(dir string) (out []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // made by the first setup
	}
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}
