package execution

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"keryx/internal/process"
)

// account is who commands run as; nil is the executor itself.
type account struct {
	process.User
	name, home string
}

// accountOf looks a user up, by name or number, and makes sure that this executor may
// become it.
func accountOf(name string) (*account, error) {
	if name == "" {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		byID, errID := user.LookupId(name)
		if errID != nil {
			return nil, fmt.Errorf("look up user: %w", err)
		}
		u = byID
	}
	a := &account{name: u.Username, home: u.HomeDir}
	if a.UID, err = number(u.Uid); err == nil {
		a.GID, err = number(u.Gid)
	}
	groups, errGroups := u.GroupIds()
	if err == nil {
		err = errGroups
	}
	for _, g := range groups {
		var id uint32
		if id, err = number(g); err != nil {
			break
		}
		a.Groups = append(a.Groups, id)
	}
	if err != nil {
		return nil, fmt.Errorf("look up user %s: %w", name, err)
	}
	return a, a.mayBecome()
}

func number(s string) (uint32, error) {
	v, err := strconv.ParseUint(s, 10, 32)
	return uint32(v), err
}

// mayBecome refuses what could only fail at each launch.
func (a *account) mayBecome() error {
	if own := os.Geteuid(); own != 0 && own != int(a.UID) {
		return fmt.Errorf("user %s: an executor that runs as user %d cannot run commands as another", a.name, own)
	}
	return nil
}

// switches returns who to become; nil when it is who the executor is.
func (a *account) switches() *process.User {
	if a == nil || os.Geteuid() != 0 {
		return nil
	}
	return &a.User
}

// environ changes what names the user.
func (a *account) environ(env map[string]string) {
	if a == nil {
		return
	}
	delete(env, "SHELL") // the executor's, not theirs
	env["HOME"], env["USER"], env["LOGNAME"] = a.home, a.name, a.name
}
