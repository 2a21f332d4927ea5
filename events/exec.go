package events

// Selection pins what a caller saw of a target; a start names one, and anything
// that moved since is refused as stale_selection.
type Selection struct {
	Target      TargetName    `json:"target"`
	Generation  uint64        `json:"generation"`
	AccessEpoch uint64        `json:"access_epoch"`
	LeaseFence  Fence         `json:"lease_fence,omitzero"`
	Executor    PrincipalName `json:"executor"`
	Instance    Instance      `json:"instance"`
	// Controller is who alone may type into the target's terminals; empty is nobody in
	// particular. It is told, and not compared: the access epoch rises with each change.
	Controller PrincipalName `json:"controller,omitempty"`
}

// Outlives says what ends an exec by itself.
type Outlives string

// What ends an exec by itself.
const (
	OutlivesEpoch   Outlives = "epoch"   // stopped when the epoch ends; the default
	OutlivesSession Outlives = "session" // runs on over a reset
)

// EnvMode says what an exec's environment begins with.
type EnvMode string

// What an exec's environment begins with.
const (
	EnvLayered EnvMode = "layered" // a short list from the executor, the target's, the call's, the KERYX_ names; the default
	EnvExact   EnvMode = "exact"   // what the call sets, and nothing else
)

// PTYSize is the size of a terminal, in characters: 1 to [MaxPTYSize] each.
type PTYSize struct {
	Rows int `json:"rows"`
	Cols int `json:"cols"`
}

// ExecSpec is the action: what runs, and how.
type ExecSpec struct {
	// Argv is the argument list; no shell is involved unless it names one.
	Argv     []string          `json:"argv"`
	EnvSet   map[string]string `json:"env_set,omitempty"`
	EnvUnset []string          `json:"env_unset,omitempty"`
	// Cwd is absolute; empty means the target's.
	Cwd string `json:"cwd,omitempty"`
	// Stdin is fed to the process, then closed. Absent means /dev/null.
	Stdin []byte `json:"stdin,omitempty"`
	// TimeoutMS stops the tree after so long. 0: no limit.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// GraceMS is the time from TERM to KILL at a stop. Absent: 5 s. 0: KILL at once.
	GraceMS  *int64   `json:"grace_ms,omitempty"`
	Outlives Outlives `json:"outlives,omitempty"`
	EnvMode  EnvMode  `json:"env_mode,omitempty"`
	// Login: true runs the login files of the target's shell first. What the call and the
	// target set and unset, and the directory, win over them; a name that they made
	// readonly ends the exec with status 125 before the command.
	Login bool `json:"login,omitempty"`
	// Background: true makes the end an item of kind job_exit of the session, in the
	// epoch that asked for the exec, so that the agent hears of it.
	Background bool `json:"background,omitempty"`
	// PTY is the size of the terminal that the command runs on. Its output is one stream,
	// named pty; stdin is typed at the start. Absent: pipes.
	PTY *PTYSize `json:"pty,omitempty"`
}

// ExecRequested is appended before the executor is told.
type ExecRequested struct {
	Exec      ExecID        `json:"exec"`
	Turn      TurnID        `json:"turn,omitempty"`
	Requester PrincipalName `json:"requester"`
	Selection Selection     `json:"selection"`
	Spec      ExecSpec      `json:"spec"`
	// Approval is set when a person has to approve the action first: the executor is told
	// once the approval was consumed.
	Approval *ExecApproval `json:"approval,omitempty"`
}

// ExecApproval binds an exec to the approval of exactly this action.
type ExecApproval struct {
	ID ApprovalID `json:"id"`
	// Digest is over all that was approved; see package approvals.
	Digest         ActionDigest `json:"digest"`
	PolicyRevision string       `json:"policy_revision"` // of the policy that asked for it
}

// ExecStarted says that the process runs.
type ExecStarted struct {
	Exec ExecID `json:"exec"`
	PID  int    `json:"pid"`
}

// ExecRefused is the terminal event of an exec that never ran.
type ExecRefused struct {
	Exec    ExecID `json:"exec"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Cleanup says what is known of the process tree after the end.
type Cleanup string

// What is known of the process tree after the end.
const (
	CleanupProved Cleanup = "proved" // the cgroup is empty
	CleanupSwept  Cleanup = "swept"  // the search found nothing more
	CleanupLeft   Cleanup = "left"   // processes are left; see LeftPIDs
)

// StreamSummary is what an exec wrote to one stream.
type StreamSummary struct {
	Name   string `json:"name"` // stdout, stderr or pty
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// MissingBytes were produced but could not be kept on the bus.
	MissingBytes int64 `json:"missing_bytes,omitempty"`
	// Redacted is how many registered secrets were taken out; bytes and hash are those of
	// what was left.
	Redacted int64 `json:"redacted,omitempty"`
}

// ExecExited is the terminal event of an exec that ran to an end that was seen. It
// follows the last byte of output.
type ExecExited struct {
	Exec ExecID `json:"exec"`
	// ExitCode is 0-255, or -1 when a signal ended the process.
	ExitCode   int             `json:"exit_code"`
	Signal     string          `json:"signal,omitempty"`
	TimedOut   bool            `json:"timed_out,omitempty"`
	Stopped    bool            `json:"stopped,omitempty"` // a stop was asked for
	DurationMS int64           `json:"duration_ms"`
	Streams    []StreamSummary `json:"streams"`
	Cleanup    Cleanup         `json:"cleanup"`
	LeftPIDs   []int           `json:"left_pids,omitempty"`
}

// ExecLost is the terminal event of an exec whose end nobody saw.
type ExecLost struct {
	Exec   ExecID `json:"exec"`
	Reason string `json:"reason"`
}
