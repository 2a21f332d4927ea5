package events

// PlanSetup says what a package's setup would run, for consent. It runs nothing.
// Answer: [SetupAnswer]; [ShowSetup] has the plan.
type PlanSetup struct {
	// Package is a key or, where only one package has it, a name.
	Package string     `json:"package"`
	Target  TargetName `json:"target"`
	// To is a session that waits for the package. It is told once when the setup has
	// succeeded.
	To string `json:"to,omitempty"`
}

// ConsentSetup consents to exactly the revision that was reviewed. It runs nothing.
// Answer: [SetupAnswer].
type ConsentSetup struct {
	Run      RunID    `json:"run"`
	Revision Revision `json:"revision"`
	// User is who consents, in the words of the caller's platform; empty for the caller.
	User string `json:"user,omitempty"`
}

// RunSetup runs a setup that was consented to. Answer: [SetupAnswer], at once.
type RunSetup struct {
	Run      RunID    `json:"run"`
	Revision Revision `json:"revision"`
}

// CancelSetup cancels a run at any time before its end. Answer: [SetupAnswer], at once;
// the end is the event cancelled.
type CancelSetup struct {
	Run    RunID  `json:"run"`
	Reason string `json:"reason,omitempty"`
}

// SetupAnswer says where a run stands.
type SetupAnswer struct {
	Run      RunID      `json:"run"`
	State    SetupState `json:"state"`
	Revision Revision   `json:"revision"`
}

// ShowSetup asks for a run. Answer: [SetupView].
type ShowSetup struct {
	Run RunID `json:"run"`
}

// SetupView is a run: what it is to do and where it stands.
type SetupView struct {
	SetupSummary
	Plan SetupPlan `json:"plan"`
	// Asks are the sessions that wait for it.
	Asks []SetupAsk `json:"asks,omitempty"`
}

// SetupList asks for runs, newest first. Answer: [Setups].
type SetupList struct {
	// Package is a key or a name; empty for all.
	Package string `json:"package,omitempty"`
	// Executor names the executor whose unfinished runs are asked for; empty for all runs.
	Executor PrincipalName `json:"executor,omitempty"`
	// Limit is how many are wanted; 0: 100.
	Limit int `json:"limit,omitempty"`
}

// Setups is a list of runs.
type Setups struct {
	Runs []SetupSummary `json:"runs"` // newest first
}

// ReportProgress is the executor's word on how far a run has come. Answer: [Done].
type ReportProgress struct {
	Instance Instance        `json:"instance"`
	Fact     SetupProgressed `json:"fact"`
}

// ReportSetupEnded is the executor's word that a run has ended, to be sent until it is
// answered. Answer: [SetupVerdict].
type ReportSetupEnded struct {
	Run      RunID    `json:"run"`
	Instance Instance `json:"instance"`
	// Path is where the result is, complete and on disk; empty when the run failed.
	Path string `json:"path,omitempty"`
	// Code and Message say why it failed; empty when it did not.
	Code    Code      `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	End     *SetupEnd `json:"end,omitempty"`
}

// SetupVerdict says whether a run's result counts.
type SetupVerdict struct {
	// Keep is false when the run was cancelled or given up before: the executor then
	// takes the result away.
	Keep bool `json:"keep"`
}

// SetupOrder tells an executor to run a setup (kx.exec ... .setup). It answers with
// [ReportProgress] and [ReportSetupEnded].
type SetupOrder struct {
	Plan SetupPlan `json:"plan"`
}

// SetupStopOrder tells an executor to end a run's process tree (kx.exec ... .setupstop).
type SetupStopOrder struct {
	Run    RunID  `json:"run"`
	Reason string `json:"reason"`
}
