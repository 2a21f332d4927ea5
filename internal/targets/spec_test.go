package targets_test

import (
	"errors"
	"strings"
	"testing"

	"keryx/events"
	"keryx/internal/targets"
)

func TestCheckSpec_names_what_is_wrong_and_where(t *testing.T) {
	t.Parallel()
	type spec = events.TargetSpec
	for name, c := range map[string]struct {
		change func(*spec)
		path   string
		code   events.Code
	}{
		"nothing wrong":                    {change: func(*spec) {}},
		"a bad name":                       {change: func(s *spec) { s.Name = "A" }, path: "/spec/name"},
		"no kind":                          {change: func(s *spec) { s.Kind = "" }, path: "/spec/kind"},
		"a relative directory":             {change: func(s *spec) { s.Cwd = "srv" }, path: "/spec/cwd"},
		"a relative shell":                 {change: func(s *spec) { s.Shell = "sh" }, path: "/spec/shell"},
		"a relative runtime directory":     {change: func(s *spec) { s.RuntimeDir = "run" }, path: "/spec/runtime_dir"},
		"a relative prefix":                {change: func(s *spec) { s.CommandPrefix = []string{"env"} }, path: "/spec/command_prefix/0"},
		"a NUL in a prefix":                {change: func(s *spec) { s.CommandPrefix = []string{"/env", "a\x00"} }, path: "/spec/command_prefix/1"},
		"a variable without a name":        {change: func(s *spec) { s.EnvSet = map[string]string{"": "x"} }, path: "/spec/env_set"},
		"a NUL in a value":                 {change: func(s *spec) { s.EnvSet = map[string]string{"A": "\x00"} }, path: "/spec/env_set/A"},
		"an unset name with =":             {change: func(s *spec) { s.EnvUnset = []string{"A", "B=1"} }, path: "/spec/env_unset/1"},
		"an authoritative name with =":     {change: func(s *spec) { s.AuthoritativeEnv = []string{"B=1"} }, path: "/spec/authoritative_env/0"},
		"a check of nothing":               {change: func(s *spec) { s.Validate = &events.TargetCheck{} }, path: "/spec/validate/command"},
		"a negative time":                  {change: func(s *spec) { s.Validate = &events.TargetCheck{Command: []string{"x"}, TimeoutMS: -1} }, path: "/spec/validate/timeout_ms"},
		"an unknown default of approvals":  {change: func(s *spec) { s.Approval = &events.ApprovalPolicy{Default: "maybe"} }, path: "/spec/approval/default"},
		"a rule for every command":         {change: func(s *spec) { s.Approval = approval(events.ApprovalRule{Decision: "never"}) }, path: "/spec/approval/rules/0/argv_prefix"},
		"an unknown decision":              {change: func(s *spec) { s.Approval = approval(events.ApprovalRule{ArgvPrefix: []string{"rm"}}) }, path: "/spec/approval/rules/0/decision"},
		"exclusive and per session":        {change: func(s *spec) { s.Exclusive, s.PerSession = true, true }, path: "/spec/per_session"},
		"per session without a directory":  {change: func(s *spec) { s.Cwd, s.PerSession = "", true }, path: "/spec/cwd"},
		"an unknown word for a lost lease": {change: func(s *spec) { s.OnLeaseLoss = "ask" }, path: "/spec/on_lease_loss"},
		"a negative limit":                 {change: func(s *spec) { s.Limits = &events.TargetLimits{PIDs: -1} }, path: "/spec/limits/pids"},
		"the longest runtime directory":    {change: func(s *spec) { s.RuntimeDir = long(86) }},
		"a runtime directory that is longer": {
			change: func(s *spec) { s.RuntimeDir = long(87) }, path: "/spec/runtime_dir", code: events.CodeRuntimeDirTooLong,
		},
		"one that is too long with a session's directory": {
			change: func(s *spec) { s.RuntimeDir, s.PerSession = long(60), true }, path: "/spec/runtime_dir", code: events.CodeRuntimeDirTooLong,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec{Name: "work", Kind: "terminal", Cwd: "/srv", Shell: "/bin/sh", RuntimeDir: "/run/keryx"}
			c.change(&s)
			wantError(t, targets.CheckSpec(s), c.path, c.code)
		})
	}
}

func wantError(t *testing.T, err error, path string, code events.Code) {
	t.Helper()
	if path == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if code == "" {
		code = events.CodeInvalid
	}
	e, ok := errors.AsType[*events.Error](err)
	if !ok || e.Path != path || e.Code != code {
		t.Errorf("got %v, want %s at %s", err, code, path)
	}
}

func approval(rules ...events.ApprovalRule) *events.ApprovalPolicy {
	return &events.ApprovalPolicy{Default: events.ApprovalNever, Rules: rules}
}

func long(n int) string { return "/" + strings.Repeat("a", n-1) }
