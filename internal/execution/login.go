package execution

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"keryx/events"
)

// statusReadonly is the exit status of a login shell that could not keep to what the
// command was promised.
const statusReadonly = 125

// loginPrefix begins the names that carry values past the login files, which are in no
// argument list for everybody to read.
const loginPrefix = "KERYX_LOGIN_"

var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// loginShell wraps a command so that it runs after the login files of a shell, with what
// was set and unset, and the directory, as if they had not been read. env must hold what
// set names; entries are added to it. Names that no shell has are refused.
func loginShell(shell string, argv []string, env map[string]string, set, unset []string, dir string) ([]string, error) {
	var script strings.Builder
	for i, name := range slices.Sorted(slices.Values(set)) {
		if !shellName.MatchString(name) {
			return nil, noShellName(name)
		}
		carrier := loginPrefix + strconv.Itoa(i)
		env[carrier] = env[name]
		fmt.Fprintf(&script, "(unset -v %[1]s && %[1]s=x) 2>/dev/null || { %[3]s; }\n"+
			"%[1]s=$%[2]s; export %[1]s; unset -v %[2]s\n", name, carrier, complain(name))
	}
	for _, name := range slices.Sorted(slices.Values(unset)) {
		if !shellName.MatchString(name) {
			return nil, noShellName(name)
		}
		fmt.Fprintf(&script, "(unset -v %[1]s) 2>/dev/null || { %[2]s; }\nunset -v %[1]s\n", name, complain(name))
	}
	if dir != "" {
		env[loginPrefix+"DIR"] = dir
		fmt.Fprintf(&script, "CDPATH= cd -- \"$%[1]sDIR\" >/dev/null || exit %[2]d\nunset -v %[1]sDIR\n", loginPrefix, statusReadonly)
	}
	script.WriteString("unset -v OLDPWD\n" + execute(argv[0]))
	return append([]string{shell, "-l", "-c", script.String(), "keryx"}, argv...), nil
}

// execute returns what executes the arguments. Some shells take options of exec, and of
// those that do not, some take "--" for the command.
func execute(command string) string {
	if !strings.HasPrefix(command, "-") {
		return "exec \"$@\"\n"
	}
	return "if (exec -- /bin/sh -c :) 2>/dev/null; then exec -- \"$@\"; else exec \"$@\"; fi\n"
}

func complain(name string) string {
	return fmt.Sprintf("echo 'keryx: the login files made %s readonly' >&2; exit %d", name, statusReadonly)
}

func noShellName(name string) error {
	return events.Errorf(events.CodeInvalid, "a login shell cannot keep variable %q: no shell has such a name", name)
}

// promised returns the names that a login shell must not change: what target and call set
// and unset, and who the command belongs to.
func promised(env map[string]string, target events.TargetSpec, ask events.ExecSpec) (set, unset []string) {
	touched := map[string]bool{}
	if target.RuntimeDir != "" {
		touched["XDG_RUNTIME_DIR"] = true
	}
	for _, names := range [][]string{target.EnvUnset, target.AuthoritativeEnv, ask.EnvUnset, keys(target.EnvSet), keys(ask.EnvSet), reservedIn(env)} {
		for _, name := range names {
			touched[name] = true
		}
	}
	for name := range touched {
		if _, ok := env[name]; ok {
			set = append(set, name)
		} else {
			unset = append(unset, name)
		}
	}
	return set, unset
}

func keys(m map[string]string) []string { return slices.Collect(maps.Keys(m)) }

func reservedIn(env map[string]string) (names []string) {
	for name := range env {
		if strings.HasPrefix(name, reserved) {
			names = append(names, name)
		}
	}
	return names
}
