package httpapi

import (
	"net/http"

	"keryx/events"
)

// route is one row of the table.
type route struct {
	method, path string
	// id is the operation's, words what it does.
	id, words string
	// command is the type that the route sends; empty for routes of the edge's own.
	command events.Type
	// roles may use a route of the edge's own; those of a command are the catalogue's.
	roles []events.Role
	// query are the query's fields; those of a command that reads are its schema's.
	query []param
	// body and answer are the schemas of routes of the edge's own.
	body, answer schema
	// extra are body fields beyond the command's, optional ones fields that the edge can
	// fill in.
	extra    map[string]schema
	optional []string
	// events says that the route can answer with a stream of events.
	events bool
	// long routes have no time limit of a request.
	long  bool
	serve func(*call) error
}

// param is one field of a query.
type param struct {
	name, words string
	schema      schema
}

type schema = map[string]any

// allowed are the roles whose tokens may use the route.
func (rt *route) allowed() []events.Role {
	if rt.command == "" {
		return rt.roles
	}
	e, _ := events.Find(rt.command) // a test finds each
	return e.Roles
}

// table is every route, in the order of the documentation. A later group of routes is
// appended here, and is behind the same checks.
func table() []route {
	var all []route
	for _, group := range [][]route{
		sessionRoutes(), messageRoutes(), turnRoutes(), eventRoutes(), execRoutes(), approvalRoutes(), setupRoutes(), commandRoutes(), leaseRoutes(), hostRoutes(),
	} {
		all = append(all, group...)
	}
	return all
}

func get(path, id string, c events.Type, words string) route {
	return route{method: http.MethodGet, path: path, id: id, command: c, words: words, serve: (*call).command}
}

func post(path, id string, c events.Type, words string) route {
	return route{method: http.MethodPost, path: path, id: id, command: c, words: words, serve: (*call).command}
}

// lasting lets a route wait as long as its caller does.
func (rt route) lasting() route {
	rt.long = true
	return rt
}

func sessionRoutes() []route {
	show := get("/v1/sessions/{to}", "showSession", events.CmdSessionShow, "Show a session: its state and what it waits for, now or as it was")
	show.serve, show.query = (*call).showSession, []param{atParam()}
	return []route{
		get("/v1/sessions", "listSessions", events.CmdSessionList, "List the profile's sessions, a page at a time"),
		post("/v1/sessions", "registerSession", events.CmdSessionRegister, "Find the session with these names, or make it"),
		show,
		post("/v1/sessions/{to}/aliases", "aliasSession", events.CmdSessionAlias, "Give a session more names"),
		post("/v1/sessions/{to}/reset", "resetSession", events.CmdSessionReset, "End the epoch and begin the next; a running turn is interrupted first").lasting(),
		post("/v1/sessions/{to}/policy", "setPolicy", events.CmdSessionPolicy, "Change what a session asks for"),
		post("/v1/sessions/{to}/finalize", "finalizeSession", events.CmdSessionFinalize, "End the epoch; a running turn is interrupted first").lasting(),
	}
}

func messageRoutes() []route {
	submit := post("/v1/sessions/{to}/messages", "submit", events.CmdContinuationSubmit, "Put a message into a session; the answer is its receipt")
	submit.serve = (*call).submit
	return []route{
		submit,
		get("/v1/receipts/{id}", "showReceipt", events.CmdContinuationReceipt, "Tell where a message stands, at any time"),
		post("/v1/receipts/{receipt}/cancel", "cancel", events.CmdContinuationCancel, "Take back a message that was not accepted"),
		post("/v1/receipts/{receipt}/edit", "edit", events.CmdContinuationEdit, "Give a message that was not accepted another body"),
		post("/v1/receipts/{receipt}/requeue", "requeue", events.CmdContinuationRequeue, "Put an unresolved message back to the head of the queue, or release a held one"),
		post("/v1/receipts/{receipt}/discard", "discard", events.CmdContinuationDiscard, "End an unresolved message"),
	}
}

func turnRoutes() []route {
	return []route{
		get("/v1/sessions/{to}/turns", "listTurns", events.CmdTurnList, "List a session's turns, newest first, without their replies"),
		get("/v1/turns/{turn}", "showTurn", events.CmdTurnShow, "Show a turn with its reply, at any time"),
		post("/v1/sessions/{to}/interrupt", "interrupt", events.CmdTurnInterrupt, "Abort the running turn; the answer is how it ended").lasting(),
	}
}

func approvalRoutes() []route {
	return []route{
		get("/v1/approvals", "listApprovals", events.CmdApprovalList, "List what waits for somebody's word"),
		get("/v1/approvals/{approval}", "showApproval", events.CmdApprovalShow, "Show an approval with the action that it is about"),
		post("/v1/approvals/{approval}/grant", "grantApproval", events.CmdApprovalGrant, "Approve one action, once; the first answer wins"),
		post("/v1/approvals/{approval}/deny", "denyApproval", events.CmdApprovalDeny, "Refuse one action; the first answer wins"),
		post("/v1/sessions/{session}/questions", "askPolicy", events.CmdPolicyAsk, "Ask whether a tool may run; the answer is the verdict").lasting(),
		get("/v1/sessions/{session}/questions/{question}", "showQuestion", events.CmdPolicyShow, "Show a question and its verdict"),
	}
}

func leaseRoutes() []route {
	return []route{
		get("/v1/targets", "listTargets", events.CmdTargetList, "List the places to run"),
		get("/v1/targets/{name}", "selectTarget", events.CmdTargetSelect, "Pin a target as it is now; nothing is started"),
		post("/v1/targets/{name}/control", "controlTarget", events.CmdTargetControl, "Take over who may type into a target, or give it back"),
		post("/v1/targets/{name}/detach", "detachTarget", events.CmdTargetDetach, "Give up a session's claim on an exclusive target"),
		post("/v1/leases/revoke", "revokeLease", events.CmdLeaseRevoke, "Take a lease away from its holder"),
		get("/v1/leases", "listLeases", events.CmdLeaseList, "List the leases on record"),
		post("/v1/leases/acquire", "acquireLease", events.CmdLeaseAcquire, "Acquire the lease of a gateway account"),
		post("/v1/leases/renew", "renewLeases", events.CmdLeaseRenew, "Renew leases"),
		post("/v1/leases/release", "releaseLease", events.CmdLeaseRelease, "Give a lease back"),
		get("/v1/tokens", "listTokens", events.CmdTokenList, "List the profile's tokens; secrets are kept nowhere"),
	}
}
