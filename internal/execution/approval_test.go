package execution_test

import (
	"os"
	"path/filepath"
	"testing"

	"keryx/events"
	"keryx/internal/approvals"
	"keryx/internal/execution"
)

var asking = events.TargetSpec{
	Name: "local", Kind: "terminal",
	Approval: &events.ApprovalPolicy{Default: events.ApprovalAlways, Rules: []events.ApprovalRule{{ArgvPrefix: []string{"true"}, Decision: events.ApprovalNever}}},
}

// approve binds an order to an approval of what it says now.
func approve(o *events.StartOrder, target events.TargetSpec) {
	sel := o.Request.Selection
	action := approvals.Action{
		Session: o.Session, Epoch: o.Epoch, Spec: o.Request.Spec,
		Target: approvals.TargetOf(target, sel.Generation, sel.AccessEpoch),
	}
	o.Request.Approval = &events.ExecApproval{
		ID: events.ApprovalID(events.NewID()), Digest: action.Digest(), PolicyRevision: approvals.Revision(target.Approval),
	}
}

// TestAnApprovalForOneActionStartsNoOther gives a real executor orders that were changed
// in one place after they were approved. It looks itself, whatever the bus has checked.
func TestAnApprovalForOneActionStartsNoOther(t *testing.T) {
	t.Parallel()
	moved := asking
	moved.Approval = &events.ApprovalPolicy{Default: events.ApprovalOnRequest}
	b := newBus(t)
	serve(t, b, execution.Config{Target: asking})
	dir := t.TempDir()
	for name, c := range map[string]struct {
		change func(o *events.StartOrder)
		code   events.Code // empty: it runs
	}{
		"nothing":                  {func(*events.StartOrder) {}, ""},
		"a byte of an argument":    {func(o *events.StartOrder) { o.Request.Spec.Argv[2] += " " }, events.CodeStaleApproval},
		"an argument more":         {func(o *events.StartOrder) { o.Request.Spec.Argv = append(o.Request.Spec.Argv, "") }, events.CodeStaleApproval},
		"a variable's value":       {func(o *events.StartOrder) { o.Request.Spec.EnvSet = map[string]string{"A": "2"} }, events.CodeStaleApproval},
		"a variable less":          {func(o *events.StartOrder) { o.Request.Spec.EnvUnset = nil }, events.CodeStaleApproval},
		"the directory":            {func(o *events.StartOrder) { o.Request.Spec.Cwd = "/tmp" }, events.CodeStaleApproval},
		"a byte of standard input": {func(o *events.StartOrder) { o.Request.Spec.Stdin[0] ^= 1 }, events.CodeStaleApproval},
		"the epoch":                {func(o *events.StartOrder) { o.Epoch++ }, events.CodeStaleApproval},
		"the session":              {func(o *events.StartOrder) { o.Session = events.SessionID(events.NewID()) }, events.CodeStaleApproval},
		"the target's generation":  {func(o *events.StartOrder) { o.Request.Selection.Generation++ }, events.CodeStaleSelection},
		"the access epoch":         {func(o *events.StartOrder) { o.Request.Selection.AccessEpoch++ }, events.CodeStaleSelection},
		"the target's policy":      {func(o *events.StartOrder) { approve(o, moved) }, events.CodeStaleApproval},
		"the approval is missing":  {func(o *events.StartOrder) { o.Request.Approval = nil }, events.CodeStaleApproval},
		"a byte of the digest": {func(o *events.StartOrder) {
			d := []byte(o.Request.Approval.Digest)
			d[0] ^= 1
			o.Request.Approval.Digest = events.ActionDigest(d)
		}, events.CodeStaleApproval},
	} {
		t.Run(name, func(t *testing.T) {
			marker := filepath.Join(dir, events.NewID())
			o := b.order(events.ExecSpec{
				Argv: []string{"/bin/sh", "-c", "touch " + marker}, EnvSet: map[string]string{"A": "1"},
				EnvUnset: []string{"B"}, Cwd: dir, Stdin: []byte("in"),
			})
			approve(&o, asking)
			c.change(&o)
			b.tell(events.ExecStart, o)
			if c.code == "" {
				b.exited(o)
			} else if got := b.refused(o); got.Code != c.code {
				t.Errorf("refused as %+v, want %s", got, c.code)
			}
			if _, err := os.Stat(marker); (err == nil) != (c.code == "") {
				t.Errorf("the marker: %v", err)
			}
		})
	}
}

func TestAnApprovalIsGoodForOneLaunch(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{Target: asking})
	first := b.order(sh("echo once"))
	approve(&first, asking)
	b.tell(events.ExecStart, first)
	b.exited(first)
	b.tell(events.ExecStart, first) // told again: the same exec
	again := first
	again.Request.Exec = events.ExecID(events.NewID())
	b.tell(events.ExecStart, again)
	if got := b.refused(again); got.Code != events.CodeStaleApproval {
		t.Errorf("refused as %+v", got)
	}
	if n := b.count(first.Request.Exec); n != 2 { // started, exited
		t.Errorf("%d reports of the first", n)
	}
	free := b.order(events.ExecSpec{Argv: []string{"true"}})
	b.tell(events.ExecStart, free)
	b.exited(free) // its rule asks for no approval
}

// TestTwoOrdersWithOneApprovalStartOne sends both at once.
func TestTwoOrdersWithOneApprovalStartOne(t *testing.T) {
	t.Parallel()
	b := newBus(t)
	serve(t, b, execution.Config{Target: asking})
	for range 20 {
		one := b.order(sh("true"))
		approve(&one, asking)
		two := one
		two.Request.Exec = events.ExecID(events.NewID())
		b.tell(events.ExecStart, one)
		b.tell(events.ExecStart, two)
		ends := 0
		b.until("both to end", func() bool {
			ends = 0
			for _, f := range b.facts {
				if r, ok := f.(events.ReportExited); ok && (r.Fact.Exec == one.Request.Exec || r.Fact.Exec == two.Request.Exec) {
					ends++
				}
				if r, ok := f.(events.ReportRefused); ok && (r.Fact.Exec == one.Request.Exec || r.Fact.Exec == two.Request.Exec) {
					ends += 100
				}
			}
			return ends == 101 || ends == 2 || ends == 200
		})
		if ends != 101 {
			t.Fatalf("ends %d: want one exit and one refusal", ends)
		}
	}
}
