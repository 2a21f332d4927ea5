package httpapi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"keryx/events"
	"keryx/internal/execution"
	"keryx/internal/setup"
	"keryx/internal/setup/bundle"
)

// tool is a package whose setup goes on when a file is there, in JSON.
func tool(t testing.TB, wait string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		setup.ManifestName: "name: Tool\nversion: '1'\nsource: example.org/tool\nsetup: {command: [bin/setup]}\n",
		"data":             "x",
		"bin/setup": `#!/bin/sh
echo '{"step":1,"total":2,"percent":40}' >&3
while [ ! -e ` + wait + ` ]; do sleep 0.02; done
echo '{"step":2,"total":2,"percent":80}' >&3
`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p, err := bundle.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(events.AddPackage{Package: p})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestASetupIsReviewedRunAndFollowedOverHTTP(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.executorWith(execution.Config{Home: t.TempDir()})
	wait := filepath.Join(t.TempDir(), "go")
	body := tool(t, wait)
	e.refused(events.RoleGateway, events.CodeForbidden, "POST", "/v1/packages", body)
	do[events.PackageRefs](e, events.RoleOperator, "POST", "/v1/packages", body)
	a := do[events.SetupAnswer](e, events.RoleGateway, "POST", "/v1/setups", `{"package":"Tool","target":"local"}`)
	at := "/v1/setups/" + string(a.Run)
	plan := do[events.SetupView](e, events.RoleObserver, "GET", at, "").Plan
	if plan.Revision != a.Revision || len(plan.Files) != 3 {
		t.Errorf("the plan is %+v", plan)
	}
	revision := fmt.Sprintf(`{"revision":%q}`, a.Revision)
	e.refused(events.RoleGateway, events.CodeForbidden, "POST", at+"/consent", revision)
	e.refused(events.RoleGateway, events.CodeNoConsent, "POST", at+"/run", revision)
	e.refused(events.RoleOperator, events.CodeRevisionChanged, "POST", at+"/consent", fmt.Sprintf(`{"revision":%q}`, plan.Package))
	do[events.SetupAnswer](e, events.RoleOperator, "POST", at+"/consent", revision)
	early := e.stream(events.RoleObserver, at)
	do[events.SetupAnswer](e, events.RoleGateway, "POST", at+"/run", revision)
	await(t, "the first step", func() bool {
		return do[events.SetupView](e, events.RoleObserver, "GET", at, "").Progress.Step == 1
	})
	late := e.stream(events.RoleObserver, at)
	first := unmarshal[events.SetupSummary](t, late.next().data)
	if first.State != events.SetupStateRunning || first.Progress.Percent != 40 {
		t.Errorf("a late viewer sees %+v first", first)
	}
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*sse{"early": early, "late": late} {
		last := first.Progress.Percent
		if name == "early" {
			last = 0
		}
		for over := false; !over; {
			ev := s.next()
			now := unmarshal[events.SetupSummary](t, ev.data)
			if ev.name != "setup" || now.Progress.Percent < last {
				t.Errorf("%s: %s after %d %%", name, ev.data, last)
			}
			last, over = now.Progress.Percent, now.State.Over()
			if over && now.State != events.SetupStateSucceeded {
				t.Errorf("%s: the end is %s", name, ev.data)
			}
		}
		if _, err := s.read(); err == nil {
			t.Errorf("%s: the stream goes on after the end", name)
		}
	}
	list := do[events.Packages](e, events.RoleObserver, "GET", "/v1/packages", "").Packages
	if len(list) != 1 || list[0].Installed == nil || list[0].Enabled {
		t.Errorf("packages are %+v", list)
	}
	e.refused(events.RoleOperator, events.CodeAlreadyEnded, "POST", at+"/cancel", `{}`)
	e.refused(events.RoleObserver, events.CodeUnknownRun, "GET", "/v1/setups/"+events.NewID(), "", "Accept", "text/event-stream")
}
