package targets

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"keryx/events"
)

// Limits of a declaration.
const (
	// MaxSocketPath is the room for the path of a socket, its final NUL counted: 104 bytes
	// on the systems that have least (design section 8).
	MaxSocketPath = 104
	// SocketName is how many bytes a runtime directory leaves for the name of a socket in it.
	SocketName = 16
	// sessionDir is what a session's own directory adds: a slash and its id.
	sessionDir = 27
	// DefaultValidateMS is how long a validate command may take that names no time.
	DefaultValidateMS = 10_000
)

// CheckSpec returns what is wrong with a declaration as an [*events.Error]; its Path is a
// JSON pointer that begins with /spec. What only the machine can say, e.g. whether a
// directory exists, is not checked.
func CheckSpec(s events.TargetSpec) error {
	for _, check := range []func(events.TargetSpec) *events.Error{
		checkKind, checkPaths, checkEnv, checkPrefix, checkValidate, checkApproval, checkSharing, checkLimits,
	} {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

func checkKind(s events.TargetSpec) *events.Error {
	if err := s.Name.Validate(); err != nil {
		return invalid("/spec/name", err.Error())
	}
	if s.Kind == "" {
		return invalid("/spec/kind", "a target needs a kind")
	}
	return nil
}

func checkPaths(s events.TargetSpec) *events.Error {
	for _, f := range []struct{ field, what, path string }{
		{"cwd", "the working directory", s.Cwd},
		{"shell", "the shell", s.Shell},
		{"runtime_dir", "the runtime directory", s.RuntimeDir},
	} {
		switch {
		case f.path == "":
		case !path.IsAbs(f.path):
			return invalid("/spec/"+f.field, f.what+" must be absolute")
		case strings.ContainsRune(f.path, 0):
			return invalid("/spec/"+f.field, f.what+" must not hold a NUL byte")
		}
	}
	return checkSocketPath(s)
}

// checkSocketPath refuses a runtime directory in which no socket could be bound.
func checkSocketPath(s events.TargetSpec) *events.Error {
	size := len(s.RuntimeDir)
	if size > 0 && s.PerSession {
		size += sessionDir
	}
	if room := MaxSocketPath - 1 - 1 - SocketName; size > room {
		e := events.Errorf(events.CodeRuntimeDirTooLong,
			"the runtime directory has %d bytes; at most %d leave room for a socket of %d bytes", size, room, SocketName)
		e.Path = "/spec/runtime_dir"
		return e
	}
	return nil
}

func checkEnv(s events.TargetSpec) *events.Error {
	for name, value := range s.EnvSet {
		if !variable(name) {
			return invalid("/spec/env_set", "a variable's name must not be empty or hold '=' or a NUL byte: "+strconv.Quote(name))
		}
		if strings.ContainsRune(value, 0) {
			return invalid("/spec/env_set/"+name, "a variable's value must not hold a NUL byte")
		}
	}
	for field, names := range map[string][]string{"env_unset": s.EnvUnset, "authoritative_env": s.AuthoritativeEnv} {
		for i, name := range names {
			if !variable(name) {
				return invalid(index("/spec/"+field, i), "a variable's name must not be empty or hold '=' or a NUL byte: "+strconv.Quote(name))
			}
		}
	}
	return nil
}

func variable(name string) bool { return name != "" && !strings.ContainsAny(name, "=\x00") }

func index(field string, i int) string { return field + "/" + strconv.Itoa(i) }

func checkPrefix(s events.TargetSpec) *events.Error {
	if len(s.CommandPrefix) > 0 && !path.IsAbs(s.CommandPrefix[0]) {
		return invalid("/spec/command_prefix/0", "the first of a command prefix must be absolute")
	}
	return noNUL("/spec/command_prefix", s.CommandPrefix)
}

func noNUL(field string, argv []string) *events.Error {
	for i, a := range argv {
		if strings.ContainsRune(a, 0) {
			return invalid(index(field, i), "an argument must not hold a NUL byte")
		}
	}
	return nil
}

func checkValidate(s events.TargetSpec) *events.Error {
	if s.Validate == nil {
		return nil
	}
	if len(s.Validate.Command) == 0 || s.Validate.Command[0] == "" {
		return invalid("/spec/validate/command", "validate needs a command")
	}
	if s.Validate.TimeoutMS < 0 {
		return invalid("/spec/validate/timeout_ms", "the time of validate must not be negative")
	}
	return noNUL("/spec/validate/command", s.Validate.Command)
}

var approvals = []events.ApprovalDecision{events.ApprovalNever, events.ApprovalAlways, events.ApprovalOnRequest}

func checkApproval(s events.TargetSpec) *events.Error {
	if s.Approval == nil {
		return nil
	}
	if !slices.Contains(approvals, s.Approval.Default) {
		return invalid("/spec/approval/default", "an approval is never, always or on_request")
	}
	for i, r := range s.Approval.Rules {
		rule := index("/spec/approval/rules", i)
		if len(r.ArgvPrefix) == 0 {
			return invalid(rule+"/argv_prefix", "a rule needs a prefix; the default is for all commands")
		}
		if !slices.Contains(approvals, r.Decision) {
			return invalid(rule+"/decision", "an approval is never, always or on_request")
		}
		if err := noNUL(rule+"/argv_prefix", r.ArgvPrefix); err != nil {
			return err
		}
	}
	return nil
}

func checkSharing(s events.TargetSpec) *events.Error {
	if s.Exclusive && s.PerSession {
		return invalid("/spec/per_session", "a target is exclusive or per session, not both")
	}
	if s.PerSession && s.Cwd == "" {
		return invalid("/spec/cwd", "a target per session needs a directory to make the sessions' directories in")
	}
	switch s.OnLeaseLoss {
	case "", events.OnLeaseLossKeep, events.OnLeaseLossKill:
		return nil
	}
	return invalid("/spec/on_lease_loss", "what happens on the loss of a lease is keep or kill")
}

func checkLimits(s events.TargetSpec) *events.Error {
	if s.Limits == nil {
		return nil
	}
	for _, l := range []struct {
		field string
		value int64
	}{{"cpu_milli", s.Limits.CPUMilli}, {"memory_bytes", s.Limits.MemoryBytes}, {"pids", s.Limits.PIDs}} {
		if l.value < 0 {
			return invalid("/spec/limits/"+l.field, "a limit must not be negative")
		}
	}
	if s.Limits.CPUMilli > 0 && s.Limits.CPUMilli < 10 {
		return invalid("/spec/limits/cpu_milli", "the least limit is a hundredth of a processor")
	}
	return nil
}

func invalid(path, message string) *events.Error {
	return &events.Error{Code: events.CodeInvalid, Message: message, Path: path}
}
