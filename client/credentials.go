package client

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nkeys"

	"keryx/events"
)

// Credentials prove who a process is.
type Credentials struct {
	Principal events.Principal
	// Seed is the NKey user seed. Keep it out of logs and environments.
	Seed []byte
}

// ErrLoosePermissions means that others than its owner may read a credentials file.
var ErrLoosePermissions = errors.New("credentials can be read by others; chmod 600 the file")

// credentialsFile is the form on disk.
type credentialsFile struct {
	Profile events.Profile       `yaml:"profile"`
	Name    events.PrincipalName `yaml:"name"`
	Role    events.Role          `yaml:"role"`
	Seed    string               `yaml:"seed"`
}

// NewCredentials makes credentials with a fresh key. The public key, which the bus has
// to know, is returned beside them.
func NewCredentials(p events.Principal) (Credentials, string, error) {
	if err := p.Validate(); err != nil {
		return Credentials{}, "", err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return Credentials{}, "", fmt.Errorf("create key: %w", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return Credentials{}, "", fmt.Errorf("create key: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return Credentials{}, "", fmt.Errorf("create key: %w", err)
	}
	return Credentials{Principal: p, Seed: seed}, public, nil
}

// ReadCredentials reads a file written by [Credentials.Write]. It returns
// [ErrLoosePermissions] if the file's mode lets others read it.
func ReadCredentials(path string) (Credentials, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Credentials{}, fmt.Errorf("read credentials %s (mode %04o): %w", path, info.Mode().Perm(), ErrLoosePermissions)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %w", err)
	}
	var f credentialsFile
	if err := yaml.UnmarshalWithOptions(b, &f, yaml.Strict()); err != nil {
		return Credentials{}, fmt.Errorf("read credentials %s: %w", path, err)
	}
	c := Credentials{Principal: events.Principal{Profile: f.Profile, Name: f.Name, Role: f.Role}, Seed: []byte(f.Seed)}
	if err := c.validate(); err != nil {
		return Credentials{}, fmt.Errorf("read credentials %s: %w", path, err)
	}
	return c, nil
}

func (c Credentials) validate() error {
	if err := c.Principal.Validate(); err != nil {
		return err
	}
	if prefix, _, err := nkeys.DecodeSeed(c.Seed); err != nil || prefix != nkeys.PrefixByteUser {
		return errors.New("the seed is not that of an NKey user")
	}
	return nil
}

// Write writes the credentials to a new file of mode 0600. An existing file is never
// overwritten: the error wraps [fs.ErrExist].
func (c Credentials) Write(path string) (err error) {
	p := c.Principal
	b, err := yaml.Marshal(credentialsFile{Profile: p.Profile, Name: p.Name, Role: p.Role, Seed: string(c.Seed)})
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".credentials-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(tmp.Name())) }()
	_, werr := tmp.Write(bytes.TrimLeft(b, "\n"))
	if err := errors.Join(werr, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	if err := os.Link(tmp.Name(), path); errors.Is(err, fs.ErrExist) { // link, unlike rename, never replaces
		return fmt.Errorf("write credentials %s: %w", path, fs.ErrExist)
	} else if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}
