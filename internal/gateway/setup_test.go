package gateway_test

import (
	"strings"
	"testing"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway"
	"keryx/internal/node"
	"keryx/internal/setup"
)

// addTool makes a package known whose setup runs bin/setup.
func addTool(t *testing.T, op *client.Conn) events.Package {
	t.Helper()
	files := []events.PackageFile{{Path: setup.ManifestName, SHA256: strings.Repeat("a", 64), Bytes: 7}}
	p := events.Package{
		Key: setup.KeyOf("Tool", "example.org/tool"), Name: "Tool", Version: "1", Source: "example.org/tool", Dir: "/srv/tool",
		Files: files, Revision: setup.ContentRevision(files), Setup: &events.PackageSetup{Command: []string{"bin/setup", "--all"}, TimeoutMS: 60_000},
		Commands: []events.PackageCommand{{Name: "tool", Help: "do it", Target: "local", Command: []string{"tool", "--now"}}},
	}
	if _, err := op.AddPackage(t.Context(), p, false); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestASetupIsReviewedAcceptedAndFollowedInTheChat(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	runner(t, n)
	op := connect(t, n, "operator", events.RoleOperator)
	tool := addTool(t, op)
	f := newFront()
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Operator: op, Key: "k", Target: "local"}, f)
	review, err := c.Setup(t.Context(), "Tool")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{string(tool.Key), "bin/setup --all", "/home/k", tool.Files[0].SHA256, "revision", "/setup accept "} {
		if !strings.Contains(review, want) {
			t.Errorf("the review lacks %q:\n%s", want, review)
		}
	}
	_, rest, _ := strings.Cut(review, "/setup accept ")
	run, _, _ := strings.Cut(rest, " ")
	if _, err := c.Setup(t.Context(), "accept "+strings.ToLower(run)); err != nil {
		t.Fatal(err)
	}
	f.line(t, "notice setup "+run+`: 50 % half\x1b[2J`)
	if said, err := c.Setup(t.Context(), "cancel "+run); err != nil || said != "setup "+run+" is cancelling" {
		t.Errorf("cancel says %q, %v", said, err)
	}
	f.line(t, "notice setup "+run+" cancelled")
	runs, err := op.Setups(t.Context(), events.SetupList{})
	if err != nil || len(runs) != 1 || runs[0].State != events.SetupStateCancelled {
		t.Errorf("runs are %+v, %v", runs, err)
	}
}

func TestAGatewayAlonePlansButDoesNotConsent(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	runner(t, n)
	addTool(t, connect(t, n, "operator", events.RoleOperator))
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Key: "k", Target: "local"}, newFront())
	review, err := c.Setup(t.Context(), "Tool")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(review, "/setup accept ")
	run, _, _ := strings.Cut(rest, " ")
	if _, err := c.Setup(t.Context(), "accept "+run); events.CodeOf(err) != events.CodeForbidden {
		t.Errorf("accept: %v", err)
	}
	for text, code := range map[string]events.Code{"Nothing": events.CodeUnknownPackage, "accept": events.CodeForbidden, "cancel 000000": events.CodeUnknownRun} {
		if _, err := c.Setup(t.Context(), text); events.CodeOf(err) != code {
			t.Errorf("/setup %s: %v", text, err)
		}
	}
}

func TestASlashCommandOfAPackageStartsItsCommand(t *testing.T) {
	t.Parallel()
	n := bus(t, node.Config{})
	runner(t, n)
	op := connect(t, n, "operator", events.RoleOperator)
	addTool(t, op)
	early := chat(t, gateway.Config{Conn: connect(t, n, "cli", events.RoleGateway), Operator: op, Key: "early", Target: "local"}, newFront())
	if _, err := op.EnablePackages(t.Context(), "Tool"); err != nil {
		t.Fatal(err)
	}
	if _, err := early.Give(t.Context(), "/tool x"); err == nil || !strings.Contains(err.Error(), "no command") {
		t.Errorf("before it is in effect: %v", err)
	}
	c := chat(t, gateway.Config{Conn: connect(t, n, "cli2", events.RoleGateway), Operator: op, Key: "k", Target: "local"}, newFront())
	said, err := c.Give(t.Context(), "/tool a b")
	if err != nil || !strings.HasPrefix(said, "/tool is job ") {
		t.Fatalf("it says %q, %v", said, err)
	}
	if !strings.Contains(c.Help(t.Context()), "/tool     do it (package)") {
		t.Errorf("help is %s", c.Help(t.Context()))
	}
	v, err := op.Show(t.Context(), "k")
	if err != nil || len(v.Execs) != 1 || strings.Join(v.Execs[0].Argv, "|") != "tool|--now|a b" {
		t.Errorf("execs are %+v, %v", v.Execs, err)
	}
	alone := chat(t, gateway.Config{Conn: connect(t, n, "cli3", events.RoleGateway), Key: "alone", Target: "local"}, newFront())
	if _, err := alone.Give(t.Context(), "/tool"); events.CodeOf(err) != events.CodeForbidden {
		t.Errorf("without an operator: %v", err)
	}
}
