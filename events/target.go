package events

// TargetSpec is what an executor declares of a target.
type TargetSpec struct {
	Name TargetName `json:"name"`
	// Kind is "terminal"; the set is open.
	Kind     string            `json:"kind"`
	Cwd      string            `json:"cwd,omitempty"`
	Shell    string            `json:"shell,omitempty"`
	EnvSet   map[string]string `json:"env_set,omitempty"`
	EnvUnset []string          `json:"env_unset,omitempty"`
	// User is who commands run as, by name or number. Empty: the executor's own user.
	User string `json:"user,omitempty"`
	// CommandPrefix goes before each argument list. Its first is absolute.
	CommandPrefix []string `json:"command_prefix,omitempty"`
	// AuthoritativeEnv are variables that only EnvSet may set: calls, login files and the
	// executor's own environment do not count for them.
	AuthoritativeEnv []string `json:"authoritative_env,omitempty"`
	// RuntimeDir is a private directory for sockets, told to commands as XDG_RUNTIME_DIR.
	RuntimeDir string `json:"runtime_dir,omitempty"`
	// Validate says by its exit whether the target can be used.
	Validate *TargetCheck `json:"validate,omitempty"`
	// Approval says which commands need a person's word. Absent: none.
	Approval *ApprovalPolicy `json:"approval,omitempty"`
	// Exclusive: true lets one session at a time run commands.
	Exclusive bool `json:"exclusive,omitempty"`
	// PerSession: true gives each session a working and a runtime directory of its own
	// below Cwd and RuntimeDir, named after its id.
	PerSession bool `json:"per_session,omitempty"`
	// OnLeaseLoss: absent means kill for an exclusive target, keep for another.
	OnLeaseLoss OnLeaseLoss `json:"on_lease_loss,omitempty"`
	// Home is where the executor installs packages of the profile. Empty: it does not.
	Home string `json:"home,omitempty"`
	// Package is whose target it is; absent for the executor's own.
	Package *PackageRef `json:"package,omitempty"`
	// Limits bound each command with all that it starts. Absent: none.
	Limits *TargetLimits `json:"limits,omitempty"`
}

// TargetCheck is a command that says whether a target can be used: by exit status 0, and
// by nothing else.
type TargetCheck struct {
	// Command is an argument list. It runs as the target's commands do, without their prefix.
	Command []string `json:"command"`
	// TimeoutMS ends it with all that it started, which counts as a failure. 0: 10 s.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// TargetLimits bound the process tree of one command. 0: no limit.
type TargetLimits struct {
	// CPUMilli is the time of processors, in thousandths of one.
	CPUMilli    int64 `json:"cpu_milli,omitempty"`
	MemoryBytes int64 `json:"memory_bytes,omitempty"` // of memory, swap included
	PIDs        int64 `json:"pids,omitempty"`         // processes and threads
	// BestEffort: true offers the target also where a limit cannot be enforced, marked so.
	// Else it is not offered there.
	BestEffort bool `json:"best_effort,omitempty"`
}

// OnLeaseLoss says what becomes of running commands when their executor can no longer
// trust its lease of the target.
type OnLeaseLoss string

// What becomes of running commands at the loss of a lease.
const (
	OnLeaseLossKeep OnLeaseLoss = "keep" // they run on
	OnLeaseLossKill OnLeaseLoss = "kill" // they are stopped: TERM at the deadline, then KILL
)

// ApprovalDecision says whether a command needs a person's word before it runs.
type ApprovalDecision string

// Whether a command needs a person's word.
const (
	ApprovalNever     ApprovalDecision = "never"      // it runs without
	ApprovalAlways    ApprovalDecision = "always"     // each time
	ApprovalOnRequest ApprovalDecision = "on_request" // when its requester asks for one
)

// ApprovalRule decides on commands that begin with certain arguments.
type ApprovalRule struct {
	// ArgvPrefix are whole arguments, compared byte by byte with the first ones.
	ArgvPrefix []string         `json:"argv_prefix"`
	Decision   ApprovalDecision `json:"decision"`
}

// ApprovalPolicy says which commands need a person's word: the first rule that matches
// decides, else Default.
type ApprovalPolicy struct {
	Default ApprovalDecision `json:"default"`
	Rules   []ApprovalRule   `json:"rules,omitempty"`
}

// TargetRegistered makes a target known (scope _profile). Its generation rises with
// each registration under one name.
type TargetRegistered struct {
	Spec       TargetSpec    `json:"spec"`
	Executor   PrincipalName `json:"executor"`
	Instance   Instance      `json:"instance"`
	Generation uint64        `json:"generation"`
	LeaseFence Fence         `json:"lease_fence,omitzero"`
	TargetCondition
}

// TargetCondition is what its executor finds of a target. The zero value is a target that
// can be used as it is declared.
type TargetCondition struct {
	// Fault says why the target cannot be used now: its own check, its runtime directory.
	Fault *Error `json:"fault,omitempty"`
	// ConfigFault says why what was declared last is not in force; what was before is.
	ConfigFault *Error `json:"config_fault,omitempty"`
	// LimitsUnenforced names the limits that the executor cannot enforce.
	LimitsUnenforced []string `json:"limits_unenforced,omitempty"`
}

// TargetReported says that the condition of a registered target has changed (scope _profile).
type TargetReported struct {
	Name       TargetName    `json:"name"`
	Executor   PrincipalName `json:"executor"`
	Instance   Instance      `json:"instance"`
	Generation uint64        `json:"generation"`
	TargetCondition
}

// TargetAttached says that a session has an exclusive target to itself (scope _profile):
// until it is detached, until its epoch ends, or as long as the executor instance has it.
type TargetAttached struct {
	Name     TargetName    `json:"name"`
	Executor PrincipalName `json:"executor"`
	Instance Instance      `json:"instance"`
	Session  SessionID     `json:"session"`
	Epoch    Epoch         `json:"epoch"`
}

// TargetDetached ends what [TargetAttached] began (scope _profile).
type TargetDetached struct {
	Name     TargetName    `json:"name"`
	Executor PrincipalName `json:"executor"`
	Instance Instance      `json:"instance"`
	Session  SessionID     `json:"session"`
	Epoch    Epoch         `json:"epoch"`
	Reason   string        `json:"reason"`
}

// TargetWithdrawn takes a target away (scope _profile).
type TargetWithdrawn struct {
	Name       TargetName    `json:"name"`
	Executor   PrincipalName `json:"executor"`
	Instance   Instance      `json:"instance"`
	Generation uint64        `json:"generation"`
	Reason     string        `json:"reason"`
}
