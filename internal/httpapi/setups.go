package httpapi

import (
	"context"
	"sync"

	"keryx/events"
)

func setupRoutes() []route {
	progress := get("/v1/setups/{run}", "showSetup", events.CmdSetupShow,
		"Show a setup: its plan and where it stands; with Accept: text/event-stream where it stands now, and then each step to its end")
	progress.serve, progress.events, progress.long = (*call).setup, true, true
	return []route{
		get("/v1/packages", "listPackages", events.CmdPackageList, "List the packages, and what of them is enabled, installed and in effect"),
		post("/v1/packages", "addPackage", events.CmdPackageAdd, "Make a package known, or its new revision; nothing is run"),
		post("/v1/packages/enable", "enablePackages", events.CmdPackageEnable, "Enable packages, all that are named or none; nothing is run"),
		post("/v1/packages/disable", "disablePackages", events.CmdPackageDisable, "Disable packages, all that are named or none"),
		post("/v1/packages/remove", "removePackages", events.CmdPackageRemove, "Forget packages, all that are named or none"),
		get("/v1/setups", "listSetups", events.CmdSetupList, "List setups, newest first"),
		post("/v1/setups", "planSetup", events.CmdSetupPlan, "Say what the setup of a package would run; nothing is run"),
		progress,
		post("/v1/setups/{run}/consent", "consentSetup", events.CmdSetupConsent, "Consent to exactly the revision that was reviewed; nothing is run"),
		post("/v1/setups/{run}/run", "runSetup", events.CmdSetupRun, "Run what was consented to"),
		post("/v1/setups/{run}/cancel", "cancelSetup", events.CmdSetupCancel, "Cancel a setup at any time before its end"),
	}
}

// eventSetup is the name of the streamed events that say where a setup stands.
const eventSetup = "setup"

// setup answers with a setup, or with a stream of where it stands.
func (c *call) setup() error {
	if !wantsStream(c.r) {
		return c.command()
	}
	if _, err := c.data(); err != nil {
		return err
	}
	run := events.RunID(c.r.PathValue("run"))
	if !events.IsULID(string(run)) {
		return invalid("/run", "%q is no id of a run", run)
	}
	if _, err := c.conn.Setup(c.ctx(), run); err != nil {
		return err
	}
	st, err := c.stream()
	if err != nil {
		return err
	}
	st.close(st.setup(run))
	return nil
}

// setup sends where a run stands: the snapshot first, then each change, never backwards,
// to its end.
func (st *stream) setup(run events.RunID) error {
	if err := st.open(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(st.ctx)
	defer cancel(nil)
	steps, ended := make(chan events.SetupSummary), make(chan error, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		_, err := st.c.conn.WatchSetup(ctx, run, func(now events.SetupSummary) bool {
			select {
			case steps <- now:
				return true
			case <-ctx.Done():
				return false
			}
		})
		ended <- err
	})
	err := st.setupSteps(steps, ended)
	cancel(err)
	return err
}

func (st *stream) setupSteps(steps <-chan events.SetupSummary, ended <-chan error) error {
	for {
		select {
		case now := <-steps:
			if err := st.write(jsonFrame(eventSetup, now.Ordinal.String(), now)); err != nil {
				return err
			}
			if now.State.Over() {
				return nil
			}
		case err := <-ended:
			return err
		case <-st.beat.C:
			if err := st.write([]byte(": alive\n\n")); err != nil {
				return err
			}
		case <-st.ctx.Done():
			return context.Cause(st.ctx)
		}
	}
}
