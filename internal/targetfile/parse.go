package targetfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"keryx/events"
	"keryx/internal/targets"
)

// MaxFile is the largest file, 1 MiB: what it declares travels in one message.
const MaxFile = 1 << 20

// Read reads the target of a file and checks what it names on this machine: the command
// prefix must be there and executable. Errors are [*Error].
func Read(path string) (events.TargetSpec, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return events.TargetSpec{}, &Error{Path: path, Message: reason(err)}
	}
	spec, places, failed := parse(b)
	if failed == nil && len(spec.CommandPrefix) > 0 {
		failed = executable(spec.CommandPrefix[0], places["/command_prefix/0"])
	}
	if failed != nil {
		failed.Path = path
		return events.TargetSpec{}, failed
	}
	return spec, nil
}

// Parse reads the target of a file's text. Path is for errors, which are [*Error].
func Parse(path string, text []byte) (events.TargetSpec, error) {
	spec, _, err := parse(text)
	if err != nil {
		err.Path = path
		return events.TargetSpec{}, err
	}
	return spec, nil
}

func parse(text []byte) (events.TargetSpec, lines, *Error) {
	spec, places := events.TargetSpec{Kind: "terminal"}, lines{}
	root, err := document(text)
	if err != nil {
		return spec, places, err
	}
	if err := places.mapping("", shape(&spec, places))(root); err != nil {
		return spec, places, err
	}
	return spec, places, check(spec, places, root)
}

// document returns the only document of a file.
func document(text []byte) (ast.Node, *Error) {
	if len(text) > MaxFile {
		return nil, &Error{Message: fmt.Sprintf("the file has %d bytes; at most %d are read", len(text), MaxFile)}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, &Error{Line: 1, Column: 1, Message: "the file is empty"}
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntax(err)
	}
	var root ast.Node
	for _, d := range file.Docs {
		switch {
		case d.Body == nil:
		case root != nil:
			return nil, at(d.Body, "a second document; a file holds one target")
		default:
			root = d.Body
		}
	}
	if root == nil {
		return nil, &Error{Line: 1, Column: 1, Message: "the file holds no target"}
	}
	return root, nil
}

// shape says where the keys of a file go.
func shape(s *events.TargetSpec, l lines) fields {
	return fields{
		"name": text(&s.Name), "kind": text(&s.Kind), "cwd": text(&s.Cwd), "shell": text(&s.Shell),
		"user": text(&s.User), "runtime_dir": text(&s.RuntimeDir), "on_lease_loss": text(&s.OnLeaseLoss),
		"exclusive": flag(&s.Exclusive), "per_session": flag(&s.PerSession),
		"env_set":           table(l, "/env_set", &s.EnvSet),
		"env_unset":         texts(l, "/env_unset", &s.EnvUnset),
		"command_prefix":    texts(l, "/command_prefix", &s.CommandPrefix),
		"authoritative_env": texts(l, "/authoritative_env", &s.AuthoritativeEnv),
		"validate": part(&s.Validate, func(v *events.TargetCheck) value {
			return l.mapping("/validate", fields{
				"command": texts(l, "/validate/command", &v.Command), "timeout": milliseconds(&v.TimeoutMS),
			})
		}),
		"limits": part(&s.Limits, func(v *events.TargetLimits) value {
			return l.mapping("/limits", fields{
				"cpu": milli(&v.CPUMilli), "memory_bytes": integer(&v.MemoryBytes), "pids": integer(&v.PIDs),
				"best_effort": flag(&v.BestEffort),
			})
		}),
		"approval": part(&s.Approval, func(v *events.ApprovalPolicy) value {
			return l.mapping("/approval", fields{
				"default": text(&v.Default),
				"rules": list(l, "/approval/rules", &v.Rules, func(place string, r *events.ApprovalRule) value {
					return l.mapping(place, fields{
						"argv_prefix": texts(l, place+"/argv_prefix", &r.ArgvPrefix), "decision": text(&r.Decision),
					})
				}),
			})
		}),
	}
}

// check applies the rules that the bus applies, and finds the place of what breaks one.
func check(s events.TargetSpec, l lines, root ast.Node) *Error {
	err := targets.CheckSpec(s)
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*events.Error](err)
	if !ok {
		return at(root, "%v", err)
	}
	place := strings.NewReplacer("cpu_milli", "cpu", "timeout_ms", "timeout").Replace(strings.TrimPrefix(e.Path, "/spec"))
	for place != "" {
		if n, ok := l[place]; ok {
			return at(n, "%s", e.Message)
		}
		place = place[:strings.LastIndexByte(place, '/')]
	}
	return at(root, "%s", e.Message)
}

// executable returns what keeps a command from being run at all.
func executable(command string, n ast.Node) *Error {
	info, err := os.Stat(command)
	switch {
	case err != nil:
		return at(n, "command prefix %q: %s", command, reason(err))
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return at(n, "command prefix %q is not an executable file", command)
	}
	return nil
}

// reason strips the path that os adds to a system's error.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func index(place string, i int) string { return place + "/" + strconv.Itoa(i) }
