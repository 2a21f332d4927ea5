package client

import (
	"context"
	"errors"

	"keryx/client/follow"
	"keryx/events"
)

// AddPackage makes a package known, or a new revision of it. It runs nothing.
func (c *Conn) AddPackage(ctx context.Context, p events.Package, replace bool) (events.PackageRefs, error) {
	return ask[events.PackageRefs](ctx, c, events.CmdPackageAdd, events.AddPackage{Package: p, Replace: replace})
}

// EnablePackages enables packages by key or name: all of them or none. It runs nothing.
func (c *Conn) EnablePackages(ctx context.Context, names ...string) (events.PackageRefs, error) {
	return ask[events.PackageRefs](ctx, c, events.CmdPackageEnable, events.EnablePackages{Packages: names})
}

// DisablePackages disables packages by key or name: all of them or none.
func (c *Conn) DisablePackages(ctx context.Context, names ...string) (events.PackageRefs, error) {
	return ask[events.PackageRefs](ctx, c, events.CmdPackageDisable, events.DisablePackages{Packages: names})
}

// RemovePackages forgets packages by key or name: all of them or none.
func (c *Conn) RemovePackages(ctx context.Context, names ...string) (events.PackageRefs, error) {
	return ask[events.PackageRefs](ctx, c, events.CmdPackageRemove, events.RemovePackages{Packages: names})
}

// Packages returns the packages; for a session, an id or a name, with what is in effect.
func (c *Conn) Packages(ctx context.Context, to string) ([]events.PackageView, error) {
	a, err := ask[events.Packages](ctx, c, events.CmdPackageList, events.PackageList{To: to})
	return a.Packages, err
}

// PlanSetup says what the setup of a package would run. It runs nothing.
func (c *Conn) PlanSetup(ctx context.Context, p events.PlanSetup) (events.SetupAnswer, error) {
	return ask[events.SetupAnswer](ctx, c, events.CmdSetupPlan, p)
}

// ConsentSetup consents to the revision that was reviewed.
func (c *Conn) ConsentSetup(ctx context.Context, s events.ConsentSetup) (events.SetupAnswer, error) {
	return ask[events.SetupAnswer](ctx, c, events.CmdSetupConsent, s)
}

// RunSetup runs what was consented to and returns at once.
func (c *Conn) RunSetup(ctx context.Context, run events.RunID, r events.Revision) (events.SetupAnswer, error) {
	return ask[events.SetupAnswer](ctx, c, events.CmdSetupRun, events.RunSetup{Run: run, Revision: r})
}

// CancelSetup cancels a run and returns at once; [Conn.WatchSetup] shows its end.
func (c *Conn) CancelSetup(ctx context.Context, run events.RunID, reason string) (events.SetupAnswer, error) {
	return ask[events.SetupAnswer](ctx, c, events.CmdSetupCancel, events.CancelSetup{Run: run, Reason: reason})
}

// Setup returns a run: its plan and where it stands.
func (c *Conn) Setup(ctx context.Context, run events.RunID) (events.SetupView, error) {
	return ask[events.SetupView](ctx, c, events.CmdSetupShow, events.ShowSetup{Run: run})
}

// Setups returns runs, newest first.
func (c *Conn) Setups(ctx context.Context, q events.SetupList) ([]events.SetupSummary, error) {
	a, err := ask[events.Setups](ctx, c, events.CmdSetupList, q)
	return a.Runs, err
}

// ReportProgress is the executor's word on how far a run has come.
func (c *Conn) ReportProgress(ctx context.Context, fact events.SetupProgressed) error {
	return c.Do(ctx, events.CmdSetupReportProgress, events.ReportProgress{Instance: c.cfg.Instance, Fact: fact}, nil)
}

// ReportSetupEnded is the executor's word on a run's end; the verdict says whether its
// result counts.
func (c *Conn) ReportSetupEnded(ctx context.Context, r events.ReportSetupEnded) (events.SetupVerdict, error) {
	r.Instance = c.cfg.Instance
	return ask[events.SetupVerdict](ctx, c, events.CmdSetupReportEnded, r)
}

// WatchSetup calls show with where a run stands now, and then at each change, never
// backwards, until it is over or show returns false. It returns the last that was shown.
// It survives reconnects and restarts of the bus.
func (c *Conn) WatchSetup(ctx context.Context, run events.RunID, show func(events.SetupSummary) bool) (events.SetupSummary, error) {
	v, err := c.Setup(ctx, run)
	if err != nil {
		return v.SetupSummary, err
	}
	last := v.SetupSummary
	if !show(last) || last.State.Over() {
		return last, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, err := range c.Follow(ctx, FollowConfig{Scopes: []events.Scope{run.Scope()}}) {
		if _, gap := errors.AsType[*follow.GapError](err); err != nil && !gap {
			if _, hole := errors.AsType[*HoleError](err); !hole {
				return last, err
			}
		}
		if v, err = c.Setup(ctx, run); err != nil {
			return last, err
		}
		if v.Ordinal <= last.Ordinal {
			continue
		}
		last = v.SetupSummary
		if !show(last) || last.State.Over() {
			return last, nil
		}
	}
	return last, context.Cause(ctx)
}
