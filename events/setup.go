package events

import (
	"strings"
	"time"
)

// RunID names one run of a package's setup; a ULID minted by the bus.
type RunID string

// Scope returns the log scope of a run.
func (r RunID) Scope() Scope { return ScopeSetup + Scope(r) }

// ScopeSetup begins the scopes of setup runs.
const ScopeSetup Scope = "setup-"

// Run returns the run whose scope s is; empty for other scopes.
func (s Scope) Run() RunID {
	id, ok := strings.CutPrefix(string(s), string(ScopeSetup))
	if !ok || !IsULID(id) {
		return ""
	}
	return RunID(id)
}

// SetupPlan is everything that consent is given to. Its revision changes with any of it.
type SetupPlan struct {
	Run      RunID         `json:"run"`
	Key      PackageKey    `json:"key"`
	Name     string        `json:"name"` // for people
	Version  string        `json:"version"`
	Source   string        `json:"source"`
	Dir      string        `json:"dir"`
	Profile  Profile       `json:"profile"`
	Target   TargetName    `json:"target"`
	Executor PrincipalName `json:"executor"`
	// Home is where the executor installs packages of the profile.
	Home string `json:"home"`
	// Setup is what will run.
	Setup PackageSetup `json:"setup"`
	// Package is the revision of the package.
	Package Revision      `json:"package"`
	Files   []PackageFile `json:"files"`
	// Revision covers key, profile, home, target, executor, command and every file.
	Revision Revision `json:"revision"`
}

// SetupAsk is the session that waits for a setup, as it was when it asked.
type SetupAsk struct {
	Session  SessionID `json:"session"`
	Epoch    Epoch     `json:"epoch"`
	Source   string    `json:"source,omitempty"`
	Surface  string    `json:"surface,omitempty"`
	Sequence Sequence  `json:"sequence"` // of the session's newest event then
}

// SetupPlanned says what a run would do. Nothing runs yet.
type SetupPlanned struct {
	Plan SetupPlan `json:"plan"`
	// Ask is set when a session waits for the result.
	Ask *SetupAsk `json:"ask,omitempty"`
}

// SetupConsented is the consent to exactly one revision. A setup that succeeds uses it up.
type SetupConsented struct {
	Run      RunID    `json:"run"`
	Revision Revision `json:"revision"`
	// User is who gave it, as the consenting principal names them; empty for itself.
	User string `json:"user,omitempty"`
}

// SetupStarted is written before the executor is told to run the setup.
type SetupStarted struct {
	Run      RunID         `json:"run"`
	Revision Revision      `json:"revision"`
	Executor PrincipalName `json:"executor"`
	Instance Instance      `json:"instance"`
}

// SetupProgress is how far a run has come. It never goes back.
type SetupProgress struct {
	// Step counts from 1 to Total; 0 before the first.
	Step int `json:"step"`
	// Total is how many steps there are; 0 when that is not known.
	Total int `json:"total,omitempty"`
	// Percent is from 0 to 100.
	Percent int `json:"percent"`
	// Message is one line for people.
	Message string `json:"message,omitempty"`
}

// ProgressLine is one line that a setup writes to its descriptor for progress. It never
// goes back: what is less than before is not shown.
type ProgressLine struct {
	// Step counts from 1.
	Step int `json:"step,omitempty"`
	// Total is how many steps there are.
	Total int `json:"total,omitempty"`
	// Percent is from 0 to 100.
	Percent int `json:"percent,omitempty"`
	// Message is one line for people.
	Message string `json:"message,omitempty"`
}

// SetupProgressed says how far a run has come.
type SetupProgressed struct {
	Run      RunID         `json:"run"`
	Progress SetupProgress `json:"progress"`
	// Malformed counts the lines of the setup's progress that could not be read.
	Malformed int `json:"malformed,omitempty"`
}

// SetupEnd is how a run's process tree ended.
type SetupEnd struct {
	ExitCode   int     `json:"exit_code"`
	Signal     string  `json:"signal,omitempty"`
	TimedOut   bool    `json:"timed_out,omitempty"`
	DurationMS int64   `json:"duration_ms"`
	Cleanup    Cleanup `json:"cleanup"`
	LeftPIDs   []int   `json:"left_pids,omitempty"`
}

// SetupSucceeded is the commit: before it nothing is installed, from it on this is what
// the package has.
type SetupSucceeded struct {
	Run  RunID    `json:"run"`
	Path string   `json:"path"` // the directory with what was installed
	End  SetupEnd `json:"end"`
}

// SetupFailed ends a run; what was installed and enabled before is untouched.
type SetupFailed struct {
	Run RunID `json:"run"`
	// Code says why: revision_changed, launch_failed, timeout, setup_failed, lost.
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// End is absent when nothing was run, or when nobody knows how it ended.
	End *SetupEnd `json:"end,omitempty"`
}

// SetupCancelRequested is the decision to cancel a run that has started: whatever its
// processes still report, it does not succeed any more.
type SetupCancelRequested struct {
	Run    RunID  `json:"run"`
	Reason string `json:"reason,omitempty"`
}

// SetupCancelled ends a run; what was installed and enabled before is untouched.
type SetupCancelled struct {
	Run    RunID  `json:"run"`
	Reason string `json:"reason,omitempty"`
	// End is absent when nothing was run, or when nobody knows how it ended.
	End *SetupEnd `json:"end,omitempty"`
}

// SetupNotified says what became of the word to a session that waited for a setup.
type SetupNotified struct {
	Run     RunID     `json:"run"`
	Session SessionID `json:"session"`
	// Receipt is that of the item; empty when the session no longer waits.
	Receipt ReceiptID `json:"receipt,omitempty"`
	Reason  string    `json:"reason,omitempty"` // why there is none
}

// SetupState is where a run stands.
type SetupState string

// The states of a run.
const (
	SetupStatePlanned    SetupState = "planned"    // waits for consent
	SetupStateConsented  SetupState = "consented"  // may be run
	SetupStateRunning    SetupState = "running"    // the executor has it
	SetupStateCancelling SetupState = "cancelling" // its tree is being stopped
	SetupStateSucceeded  SetupState = "succeeded"
	SetupStateFailed     SetupState = "failed"
	SetupStateCancelled  SetupState = "cancelled"
)

// Over reports whether the state is final.
func (s SetupState) Over() bool {
	return s == SetupStateSucceeded || s == SetupStateFailed || s == SetupStateCancelled
}

// Active reports whether processes of the run may be alive.
func (s SetupState) Active() bool { return s == SetupStateRunning || s == SetupStateCancelling }

// SetupSummary is where a run stands, in short.
type SetupSummary struct {
	Run      RunID      `json:"run"`
	Key      PackageKey `json:"key"`
	Version  string     `json:"version"`
	Target   TargetName `json:"target"`
	State    SetupState `json:"state"`
	Revision Revision   `json:"revision"`
	// Executor and Instance have the run since it started.
	Executor  PrincipalName `json:"executor,omitempty"`
	Instance  Instance      `json:"instance,omitempty"`
	Progress  SetupProgress `json:"progress"`
	Malformed int           `json:"malformed,omitempty"` // lines of progress that could not be read
	PlannedAt time.Time     `json:"planned_at"`
	StartedAt time.Time     `json:"started_at,omitzero"`
	EndedAt   time.Time     `json:"ended_at,omitzero"`
	// Code and Message say why it failed or was cancelled.
	Code    Code      `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	End     *SetupEnd `json:"end,omitempty"`
	Path    string    `json:"path,omitempty"` // what a run that succeeded has left
	// Ordinal is that of the run's newest event: what a viewer goes on from.
	Ordinal Ordinal `json:"ordinal"`
}

// SetupReceiptData is the data of an item of kind setup_receipt.
type SetupReceiptData struct {
	Run     RunID      `json:"run"`
	Key     PackageKey `json:"key"`
	Name    string     `json:"name"`
	Version string     `json:"version"`
}
