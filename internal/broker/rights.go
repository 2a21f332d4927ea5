package broker

import (
	"slices"

	"github.com/nats-io/nats-server/v2/server"

	"keryx/events"
)

// right is one row of the rights table: the roles that have it, and the subjects it
// opens to a principal. A row has either publish or subscribe.
type right struct {
	roles     []events.Role
	publish   func(p events.Principal) string
	subscribe func(p events.Principal) string
}

// rightsTable is all that principals may do on the wire. Everything else is refused:
// above all $JS, $KV, $SRV and $SYS, and every subject of the authority's. There are no
// answering rights, since nobody answers requests but the authority.
func rightsTable() []right {
	everyone := events.Roles()
	only := func(roles ...events.Role) []events.Role { return roles }
	typists := only(events.RoleHost, events.RoleGateway, events.RoleOperator)
	return []right{
		{roles: everyone, publish: named(events.CmdAll)},
		{roles: only(events.RoleExecutor), publish: named(events.OutBy)},
		{roles: only(events.RoleHost), publish: named(events.PartsBy)},
		{roles: typists, publish: named(events.TTYBy)},
		{roles: only(events.RoleExecutor), publish: named(events.TypedBy)},

		{roles: everyone, subscribe: named(events.InboxAll)},
		{roles: everyone, subscribe: profiled(events.LiveAll)},
		{roles: everyone, subscribe: profiled(events.LeaseAll)},
		{roles: everyone, subscribe: profiled(events.OutAll)},
		{roles: everyone, subscribe: profiled(events.PartsAll)},
		{roles: only(events.RoleHost), subscribe: named(events.HostAny)},
		{roles: only(events.RoleExecutor), subscribe: named(events.ExecAny)},
		{roles: only(events.RoleExecutor), subscribe: named(events.TTYTo)},
		{roles: typists, subscribe: named(events.TypedTo)},
		{roles: only(events.RoleGateway, events.RoleOperator), subscribe: named(events.PolicyAny)},
		{roles: only(events.RoleHost, events.RoleExecutor, events.RoleGateway, events.RoleOperator), subscribe: named(events.HandlerAny)},
	}
}

// named adapts a pattern of a principal's own subjects.
func named(pattern func(events.Profile, events.PrincipalName) string) func(events.Principal) string {
	return func(p events.Principal) string { return pattern(p.Profile, p.Name) }
}

// profiled adapts a pattern of what is open to a whole profile.
func profiled(pattern func(events.Profile) string) func(events.Principal) string {
	return func(p events.Principal) string { return pattern(p.Profile) }
}

// permissions returns the rights of p as the server takes them. The server reads an
// empty list as "all", so a principal without any right gets an explicit denial.
func permissions(p events.Principal) *server.Permissions {
	var publish, subscribe []string
	for _, row := range rightsTable() {
		switch {
		case !slices.Contains(row.roles, p.Role):
		case row.publish != nil:
			publish = append(publish, row.publish(p))
		default:
			subscribe = append(subscribe, row.subscribe(p))
		}
	}
	return &server.Permissions{Publish: allow(publish), Subscribe: allow(subscribe)}
}

func allow(subjects []string) *server.SubjectPermission {
	if len(subjects) == 0 {
		return &server.SubjectPermission{Deny: []string{">"}}
	}
	return &server.SubjectPermission{Allow: subjects}
}
