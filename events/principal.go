package events

import "fmt"

// Role decides what a principal may do; one table in the broker maps roles to rights.
type Role string

// The roles of principals.
const (
	RoleHost     Role = "host"     // runs agents: attaches to sessions, takes offers, runs turns
	RoleExecutor Role = "executor" // runs commands in targets
	RoleGateway  Role = "gateway"  // brings messages in and carries replies out
	RoleOperator Role = "operator" // the person in charge of the profile
	RoleObserver Role = "observer" // reads only
)

// Roles lists every role, in the order of the rights table.
func Roles() []Role {
	return []Role{RoleHost, RoleExecutor, RoleGateway, RoleOperator, RoleObserver}
}

// Valid reports whether r is one of [Roles].
func (r Role) Valid() bool {
	for _, known := range Roles() {
		if r == known {
			return true
		}
	}
	return false
}

// Principal is an authenticated process: who it is and what it may do.
type Principal struct {
	Profile Profile       `json:"profile" yaml:"profile"`
	Name    PrincipalName `json:"name" yaml:"name"`
	Role    Role          `json:"role" yaml:"role"`
}

// Validate returns an error naming the first field that is malformed.
func (p Principal) Validate() error {
	if err := p.Profile.Validate(); err != nil {
		return err
	}
	if err := p.Name.Validate(); err != nil {
		return err
	}
	if !p.Role.Valid() {
		return fmt.Errorf("role %q is not one of %v: %w", p.Role, Roles(), ErrBadID)
	}
	return nil
}

// Source returns the CloudEvents source of what p says.
func (p Principal) Source() string { return Source(p.Profile, p.Name) }

// Source returns /profiles/<profile>/principals/<principal>.
func Source(profile Profile, name PrincipalName) string {
	return "/profiles/" + string(profile) + "/principals/" + string(name)
}

// AuthorityName is the principal name used as source of what the authority does
// by itself. No credentials can carry it.
const AuthorityName PrincipalName = "keryx-authority"
