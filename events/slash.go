package events

import (
	"slices"
	"time"
)

// CommandName is the name of a slash command, without the slash.
type CommandName string

// SurfaceHTTP is the surface of slash commands that come over HTTP. A command is not there
// unless it names this surface.
const SurfaceHTTP = "http"

// CommandField is something about where a slash command was given. A handler gets those
// that it accepts, and no others.
type CommandField string

// What a handler may accept; ids as in [Names].
const (
	FieldSessionID         CommandField = "session_id" // what the agent calls its conversation
	FieldGatewaySessionKey CommandField = "gateway_session_key"
	FieldRuntimeSessionID  CommandField = "runtime_session_id"
	FieldStoredSessionID   CommandField = "stored_session_id"
	FieldTaskID            CommandField = "task_id" // of the running turn
	FieldProfile           CommandField = "profile"
	FieldSurface           CommandField = "surface"
)

// CommandSpec is what a handler declares of a slash command.
type CommandSpec struct {
	Name CommandName `json:"name"`
	// Help is one line for lists.
	Help string `json:"help,omitempty"`
	// Surfaces are where the command is there; none: on all but http, which has to be named.
	Surfaces []string `json:"surfaces,omitempty"`
	// Fields are what an invocation is to tell beside its arguments; none: the arguments alone.
	Fields []CommandField `json:"fields,omitempty"`
	// Roles may give the command; none: all that give any.
	Roles []Role `json:"roles,omitempty"`
	// TimeoutMS is how long an answer may take. 0: 60 s; at most 1 h.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// Handler is a process that carries out slash commands.
type Handler struct {
	Principal PrincipalName `json:"principal"`
	Instance  Instance      `json:"instance"`
}

// HandlerRegistered says what a process carries out (scope _profile), in place of what it
// said before. It holds as long as the process has its lease of kind handler.
type HandlerRegistered struct {
	Handler
	LeaseFence Fence         `json:"lease_fence"`
	Commands   []CommandSpec `json:"commands,omitempty"`
}

// RegisterHandler declares what a process carries out, in place of what it declared before.
// The process holds the lease of kind handler that is named after its principal. A name that
// another live process has is refused as name_taken. Answer: [HandlerRegistered].
type RegisterHandler struct {
	Instance   Instance      `json:"instance"`
	LeaseFence Fence         `json:"lease_fence"`
	Commands   []CommandSpec `json:"commands,omitempty"`
}

// CommandInvoked is a slash command that was given to its handler, once.
type CommandInvoked struct {
	// Invocation is the id of the command that gave it.
	Invocation CommandID   `json:"invocation"`
	Name       CommandName `json:"name"`
	RawArgs    string      `json:"raw_args"` // as it was typed
	Surface    string      `json:"surface"`
	Handler    Handler     `json:"handler"`
	// Fields are what the handler was told beside the arguments.
	Fields Raw `json:"fields"`
	// Async: whoever gave it was answered at once.
	Async     bool      `json:"async,omitempty"`
	ExpiresAt time.Time `json:"expires_at"` // the handler's deadline
}

// CommandCompleted is the answer of a slash command's handler.
type CommandCompleted struct {
	Invocation CommandID   `json:"invocation"`
	Name       CommandName `json:"name"`
	Reply      string      `json:"reply,omitempty"`
}

// CommandFailed says that a slash command was not completed. It is not given again: what it
// did stands.
type CommandFailed struct {
	Invocation CommandID   `json:"invocation"`
	Name       CommandName `json:"name"`
	Error      Error       `json:"error"`
}

// InvokeCommand gives a slash command to the process that handles it. Answer:
// [InvocationView], with its outcome, or at once if it is async.
type InvokeCommand struct {
	// To is the session in which it is given.
	To      string      `json:"to"`
	Name    CommandName `json:"name"`
	RawArgs string      `json:"raw_args,omitempty"` // as it was typed
	Surface string      `json:"surface"`
	Async   bool        `json:"async,omitempty"` // the outcome comes as an event
}

// AnswerCommand is a handler's word on a slash command that it was given: a reply, or an
// error. Answer: [Done].
type AnswerCommand struct {
	Invocation CommandID `json:"invocation"`
	Instance   Instance  `json:"instance"`
	Reply      string    `json:"reply,omitempty"`
	// Error says that it failed. It is told as it is.
	Error *Error `json:"error,omitempty"`
}

// ShowCommand asks for a slash command by the id of the command that gave it. Answer:
// [InvocationView].
type ShowCommand struct {
	Session    SessionID `json:"session"`
	Invocation CommandID `json:"invocation"`
}

// InvocationState says where a slash command stands.
type InvocationState string

// Where a slash command stands.
const (
	InvocationRunning   InvocationState = "running"
	InvocationCompleted InvocationState = "completed"
	InvocationFailed    InvocationState = "failed"
)

// InvocationView is what is known of a slash command that was given.
type InvocationView struct {
	Invocation CommandID       `json:"invocation"`
	Session    SessionID       `json:"session"`
	Name       CommandName     `json:"name"`
	Handler    Handler         `json:"handler"`
	State      InvocationState `json:"state"`
	Reply      string          `json:"reply,omitempty"`
	Error      *Error          `json:"error,omitempty"`
}

// CommandList asks for the slash commands that the caller can give on a surface. Answer:
// [CommandMenu].
type CommandList struct {
	Surface string `json:"surface,omitempty"` // empty: http
}

// CommandMenu is what can be given, by name.
type CommandMenu struct {
	Commands []CommandItem `json:"commands"`
}

// CommandItem is a slash command that can be given.
type CommandItem struct {
	Name CommandName `json:"name"`
	Help string      `json:"help,omitempty"` // one line
	// Handler is the principal that carries it out; empty: the gateway itself does.
	Handler PrincipalName  `json:"handler,omitempty"`
	Fields  []CommandField `json:"fields,omitempty"`
}

// InvokeOrder gives a slash command to its handler (kx.handler ... .invoke). It answers with
// [AnswerCommand]. It comes once: what came of it is unknown to the bus until the answer.
type InvokeOrder struct {
	RawArgs string `json:"raw_args"` // as it was typed
	// Fields has the fields that the handler accepts; null for what is not known.
	Fields     Raw         `json:"fields"`
	Name       CommandName `json:"name"`
	Invocation CommandID   `json:"invocation"`
	DeadlineMS int64       `json:"deadline_ms"`
}

// GatewayCommands are the slash commands that every chat of a gateway has by itself.
func GatewayCommands() []CommandItem {
	return []CommandItem{
		{Name: "new", Help: "end this epoch and begin the next"},
		{Name: "reset", Help: "the same as /new"},
		{Name: "status", Help: "what the session is and waits for"},
		{Name: "stop", Help: "interrupt the running turn"},
		{Name: "queue", Help: "list what waits for its turn"},
		{Name: "bg", Help: "run a command in the background; the session is told of its end"},
		{Name: "jobs", Help: "list what runs"},
		{Name: "kill", Help: "end a job: its id, or the end of that"},
		{Name: "approve", Help: "let a command run that waits for somebody's word"},
		{Name: "deny", Help: "refuse it"},
		{Name: "setup", Help: "plan a package's setup, accept or cancel it"},
		{Name: "help", Help: "list these commands"},
	}
}

// Reserved reports whether no handler can have the name of a slash command.
func (n CommandName) Reserved() bool {
	return n == "link" || slices.ContainsFunc(GatewayCommands(), func(c CommandItem) bool { return c.Name == n })
}
