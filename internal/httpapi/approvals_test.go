package httpapi_test

import (
	"fmt"
	"testing"

	"keryx/events"
)

func TestAnActionIsApprovedOverHTTP(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	e.executor(func(s *events.TargetSpec) { s.Approval = &events.ApprovalPolicy{Default: events.ApprovalAlways} })
	id := e.register("web:1", "edge-host")
	instance, _ := hostOver(e)
	a := e.attach(id, instance, "")
	run := func() events.ExecID {
		return do[events.ExecAnswer](e, events.RoleHost, "POST", "/v1/sessions/"+string(id)+"/execs",
			fmt.Sprintf(`{"target":"local","fence":%q,"spec":{"argv":["true"]}}`, a.Fence)).Exec
	}
	state := func(exec events.ExecID) string {
		return do[execShown](e, events.RoleObserver, "GET", "/v1/sessions/"+string(id)+"/execs/"+string(exec), "").State
	}
	waiting := func() events.ApprovalView {
		var open events.Approvals
		await(t, "an approval to be asked for", func() bool {
			open = do[events.Approvals](e, events.RoleOperator, "GET", "/v1/approvals?to=web:1", "")
			return len(open.Approvals) == 1
		})
		return open.Approvals[0]
	}
	good, yes := run(), waiting()
	e.refused(events.RoleHost, events.CodeForbidden, "POST", "/v1/approvals/"+string(yes.Approval)+"/grant", "")
	e.refused(events.RoleGateway, events.CodeForbidden, "POST", "/v1/approvals/"+string(yes.Approval)+"/grant", "")
	do[events.ApprovalView](e, events.RoleOperator, "POST", "/v1/approvals/"+string(yes.Approval)+"/grant", "")
	await(t, "the approved command to end", func() bool { return state(good) == "exited" })
	bad, no := run(), waiting()
	do[events.ApprovalView](e, events.RoleOperator, "POST", "/v1/approvals/"+string(no.Approval)+"/deny", `{"reason":"not today"}`)
	await(t, "the denied command to be refused", func() bool { return state(bad) == "refused" })
}
