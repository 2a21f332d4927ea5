package broker

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nkeys"

	"keryx/events"
)

const principalsName = "principals.yaml"

// principalsFile is the form of principals.yaml.
type principalsFile struct {
	// DefaultHosts names, per profile, the hosts of sessions that name none.
	DefaultHosts map[events.Profile][]events.PrincipalName `yaml:"default_hosts,omitempty"`
	Principals   []principalEntry                          `yaml:"principals"`
}

type principalEntry struct {
	Profile   events.Profile       `yaml:"profile"`
	Name      events.PrincipalName `yaml:"name"`
	Role      events.Role          `yaml:"role"`
	PublicKey string               `yaml:"public_key"`
	Added     *time.Time           `yaml:"added,omitempty"`
}

func (e principalEntry) principal() events.Principal {
	return events.Principal{Profile: e.Profile, Name: e.Name, Role: e.Role}
}

// principalSet is a valid principals.yaml, ready for look-ups.
type principalSet struct {
	byKey        map[string]events.Principal
	byName       map[who]events.Principal
	defaultHosts map[events.Profile][]events.PrincipalName
}

// ReservedError says that a name belongs to the bus itself.
type ReservedError struct{ Name events.PrincipalName }

// Error implements error.
func (e *ReservedError) Error() string {
	return fmt.Sprintf("principal name %q is reserved for the bus itself", e.Name)
}

// errEmpty is not the empty set: a file without a byte is one that is being written.
var errEmpty = errors.New("the file is empty; write `principals: []` to have none")

// loadPrincipals reads the principals of dir. A missing file is the empty set and an
// error wrapping fs.ErrNotExist.
func loadPrincipals(dir string) (principalSet, error) {
	b, err := os.ReadFile(filepath.Join(dir, principalsName))
	if err != nil {
		return principalSet{}, fmt.Errorf("read principals: %w", err)
	}
	set, err := parsePrincipals(b)
	if err != nil {
		return principalSet{}, fmt.Errorf("read %s: %w", principalsName, err)
	}
	return set, nil
}

// loadPrincipalsAtStart is loadPrincipals for a bus that may have none yet.
func loadPrincipalsAtStart(dir string) (principalSet, error) {
	set, err := loadPrincipals(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return principalSet{}, nil
	}
	return set, err
}

// parsePrincipals refuses unknown keys, malformed entries and whatever is there twice.
// Errors name the line, or the entry.
func parsePrincipals(b []byte) (principalSet, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return principalSet{}, errEmpty
	}
	var file principalsFile
	if err := yaml.UnmarshalWithOptions(b, &file, yaml.Strict()); err != nil {
		return principalSet{}, fmt.Errorf("parse: %w", err)
	}
	set := principalSet{
		byKey:        make(map[string]events.Principal, len(file.Principals)),
		byName:       make(map[who]events.Principal, len(file.Principals)),
		defaultHosts: file.DefaultHosts,
	}
	for i, e := range file.Principals {
		if err := set.add(e); err != nil {
			return principalSet{}, fmt.Errorf("principals[%d] (%s/%s): %w", i, e.Profile, e.Name, err)
		}
	}
	return set, set.checkHosts()
}

func (s principalSet) add(e principalEntry) error {
	p := e.principal()
	if err := checkEntry(p, e.PublicKey); err != nil {
		return err
	}
	if by, ok := s.byName[whoOf(p)]; ok {
		return &TakenError{Principal: p, By: by}
	}
	if by, ok := s.byKey[e.PublicKey]; ok {
		return fmt.Errorf("public key is that of %s/%s", by.Profile, by.Name)
	}
	s.byName[whoOf(p)], s.byKey[e.PublicKey] = p, p
	return nil
}

// checkEntry returns what is wrong with a principal that is to be kept in the file.
func checkEntry(p events.Principal, publicKey string) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.Name == events.AuthorityName || p.Name == OperatorName {
		return &ReservedError{Name: p.Name}
	}
	if !nkeys.IsValidPublicUserKey(publicKey) {
		return fmt.Errorf("public key %q is not an NKey of a user (U...)", publicKey)
	}
	return nil
}

func (s principalSet) checkHosts() error {
	for profile, hosts := range s.defaultHosts {
		if err := profile.Validate(); err != nil {
			return fmt.Errorf("default_hosts: %w", err)
		}
		for _, host := range hosts {
			if err := host.Validate(); err != nil {
				return fmt.Errorf("default_hosts of %s: %w", profile, err)
			}
		}
	}
	return nil
}
