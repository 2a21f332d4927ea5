package broker

import (
	"slices"
	"sync"

	"github.com/nats-io/nkeys"

	"keryx/events"
)

// OperatorName is the principal that the operator socket vends. No other role may carry
// the name, and principals.yaml may not hold it.
const OperatorName events.PrincipalName = "operator"

// holder is what a public key stands for.
type holder struct {
	principal events.Principal
	// local keys are taken from connections of this process only.
	local bool
	// forOthers keys act for processes elsewhere.
	forOthers bool
	// system is the authority's own key: no limits.
	system bool
}

// who names a principal across profiles.
type who struct {
	profile events.Profile
	name    events.PrincipalName
}

func whoOf(p events.Principal) who { return who{p.Profile, p.Name} }

// Registry knows the principals of a running broker. It is safe for concurrent use.
type Registry struct {
	mu     sync.RWMutex
	file   principalSet
	local  map[string]holder // by public key: embedded principals and the system
	grants map[string]holder // by public key: operators of the socket
}

func newRegistry(file principalSet) *Registry {
	return &Registry{file: file, local: map[string]holder{}, grants: map[string]holder{}}
}

// Lookup returns the principal of that name. The operator of the socket is always
// known: only a granted connection can speak in its name.
func (r *Registry) Lookup(profile events.Profile, name events.PrincipalName) (events.Principal, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.lookupLocked(who{profile, name})
}

func (r *Registry) lookupLocked(w who) (events.Principal, bool) {
	if p, ok := r.embeddedLocked(w); ok {
		return p, true
	}
	if w.name == OperatorName {
		return events.Principal{Profile: w.profile, Name: w.name, Role: events.RoleOperator}, true
	}
	p, ok := r.file.byName[w]
	return p, ok
}

func (r *Registry) embeddedLocked(w who) (events.Principal, bool) {
	for _, h := range r.local {
		if !h.system && whoOf(h.principal) == w {
			return h.principal, true
		}
	}
	return events.Principal{}, false
}

// DefaultHosts returns the hosts of a profile's sessions that name none: those set in
// principals.yaml under default_hosts, else every host principal of the profile in
// order of name.
func (r *Registry) DefaultHosts(profile events.Profile) []events.PrincipalName {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if set, ok := r.file.defaultHosts[profile]; ok {
		return slices.Clone(set)
	}
	var hosts []events.PrincipalName
	for _, p := range r.ownLocked() {
		if p.Profile == profile && p.Role == events.RoleHost {
			hosts = append(hosts, p.Name)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// ownLocked lists the principals that act for themselves.
func (r *Registry) ownLocked() []events.Principal {
	all := make([]events.Principal, 0, len(r.file.byName)+len(r.local))
	for _, p := range r.file.byName {
		all = append(all, p)
	}
	for _, h := range r.local {
		if !h.system && !h.forOthers {
			all = append(all, h.principal)
		}
	}
	return all
}

// embedded lists the principals that live in this process, each once.
func (r *Registry) embedded() []events.Principal {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []events.Principal
	for _, h := range r.local {
		if !h.system && !slices.Contains(out, h.principal) {
			out = append(out, h.principal)
		}
	}
	return out
}

// byKey returns what a public key stands for now.
func (r *Registry) byKey(key string) (holder, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, keys := range []map[string]holder{r.local, r.grants} {
		if h, ok := keys[key]; ok {
			return h, true
		}
	}
	p, ok := r.file.byKey[key]
	if _, taken := r.embeddedLocked(whoOf(p)); taken {
		return holder{}, false
	}
	return holder{principal: p}, ok
}

// embed makes a key for h that is known to this process only.
func (r *Registry) embed(h holder) (nkeys.KeyPair, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !h.system {
		if known, ok := r.lookupLocked(whoOf(h.principal)); ok && known.Role != h.principal.Role {
			return nil, &TakenError{Principal: h.principal, By: known}
		}
		if known, ok := r.file.byName[whoOf(h.principal)]; ok {
			return nil, &TakenError{Principal: h.principal, By: known}
		}
	}
	pair, key, err := newKey()
	if err == nil {
		r.local[key] = h
	}
	return pair, err
}

// grant makes a key for an operator of the profile, until revokeGrant.
func (r *Registry) grant(profile events.Profile) (events.Principal, nkeys.KeyPair, error) {
	p := events.Principal{Profile: profile, Name: OperatorName, Role: events.RoleOperator}
	pair, key, err := newKey()
	if err != nil {
		return p, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grants[key] = holder{principal: p}
	return p, pair, nil
}

func (r *Registry) revokeGrant(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.grants, key)
}

// replace takes a new set from the file and returns the keys that no longer stand for
// what they stood for.
func (r *Registry) replace(set principalSet) (gone []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, was := range r.file.byKey {
		if now, ok := set.byKey[key]; !ok || now != was {
			gone = append(gone, key)
		}
	}
	r.file = set
	return gone
}

// shadowed lists the principals of the file whose names live in this process, and which
// are therefore not let in.
func (r *Registry) shadowed() []events.Principal {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []events.Principal
	for w, p := range r.file.byName {
		if _, taken := r.embeddedLocked(w); taken {
			out = append(out, p)
		}
	}
	return out
}
