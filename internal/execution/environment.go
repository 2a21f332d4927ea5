package execution

import (
	"maps"
	"slices"
	"strings"

	"keryx/events"
)

// inherited are the variables that commands get from the executor's own environment.
// Everything else there, credentials above all, stays there.
var inherited = []string{"HOME", "PATH", "LANG", "TZ", "USER", "LOGNAME", "SHELL", "TERM"}

// terminalType is what a terminal's reader is expected to understand.
const terminalType = "xterm-256color"

// reserved begins the names that only the bus sets: they are what a command may trust.
const reserved = "KERYX_"

// compose returns the environment of a command: the short list, then the target's
// changes, then the call's, then who the command belongs to. An exact one is what the
// call sets.
func compose(own []string, as *account, target events.TargetSpec, p events.Profile, o events.StartOrder) map[string]string {
	ask := o.Request.Spec
	if ask.EnvMode == events.EnvExact {
		env := make(map[string]string)
		maps.Copy(env, ask.EnvSet)
		authorize(env, target)
		return env
	}
	env := pick(own)
	as.environ(env)
	runtimeDir(env, target.RuntimeDir)
	if ask.PTY != nil {
		env["TERM"] = terminalType // not that of the executor's own terminal
	}
	change(env, target.EnvUnset, target.EnvSet)
	change(env, ask.EnvUnset, ask.EnvSet)
	authorize(env, target)
	maps.DeleteFunc(env, func(name, _ string) bool { return strings.HasPrefix(name, reserved) })
	maps.Copy(env, identity(p, o))
	return env
}

// authorize makes the target's word alone count for its authoritative variables.
func authorize(env map[string]string, target events.TargetSpec) {
	for _, name := range target.AuthoritativeEnv {
		delete(env, name)
		if value, ok := target.EnvSet[name]; ok {
			env[name] = value
		}
	}
}

// runtimeDir tells a command of its runtime directory, if it has one.
func runtimeDir(env map[string]string, dir string) {
	if dir != "" {
		env["XDG_RUNTIME_DIR"] = dir
	}
}

// entries returns an environment as NAME=value, sorted.
func entries(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

func pick(own []string) map[string]string {
	env := make(map[string]string)
	for _, entry := range own {
		if name, value, ok := strings.Cut(entry, "="); ok && inherits(name) {
			env[name] = value
		}
	}
	return env
}

func inherits(name string) bool {
	return slices.Contains(inherited, name) || strings.HasPrefix(name, "LC_")
}

func change(env map[string]string, unset []string, set map[string]string) {
	for _, name := range unset {
		delete(env, name)
	}
	maps.Copy(env, set)
}

// identity says who a command belongs to. What is unknown is absent, so that nothing
// stale can be taken for it.
func identity(p events.Profile, o events.StartOrder) map[string]string {
	env := map[string]string{
		"KERYX_PROFILE":             string(p),
		"KERYX_SESSION":             string(o.Session),
		"KERYX_EPOCH":               o.Epoch.String(),
		"KERYX_EXEC":                string(o.Request.Exec),
		"KERYX_TURN":                string(o.Request.Turn),
		"KERYX_GATEWAY_SESSION_KEY": string(o.Names.GatewaySessionKey),
		"KERYX_STORED_SESSION_ID":   string(o.Names.StoredSessionID),
		"KERYX_RUNTIME_SESSION_ID":  string(o.Names.RuntimeSessionID),
		"KERYX_SESSION_ID":          string(o.Names.SessionID),
		"KERYX_TASK_ID":             string(o.Names.TaskID),
		"KERYX_HOME":                o.Names.Home,
		"KERYX_SOURCE":              o.Names.Source,
		"KERYX_SURFACE":             o.Names.Surface,
	}
	maps.DeleteFunc(env, func(_, v string) bool {
		// A name may hold any bytes, an environment no NUL.
		return v == "" || strings.ContainsRune(v, 0)
	})
	return env
}

// mark is the entry by which descendants of a command are found.
func mark(id events.ExecID) string { return "KERYX_EXEC=" + string(id) }
