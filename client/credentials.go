package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nkeys"

	"keryx/events"
)

// ErrLoosePermissions is returned by [ReadCredentials] for a file that others than its
// owner may read or write.
var ErrLoosePermissions = errors.New("credentials file is open to others; chmod 600 it")

// Credentials prove who a process is: a principal and the NKey seed of its key.
type Credentials struct {
	Principal events.Principal
	// Seed is the NKey seed ("SU..."). It never goes over the wire.
	Seed []byte
}

// credentialsFile is the form on disk.
type credentialsFile struct {
	Profile events.Profile       `yaml:"profile"`
	Name    events.PrincipalName `yaml:"name"`
	Role    events.Role          `yaml:"role"`
	Seed    string               `yaml:"seed"`
}

// ReadCredentials reads a file written by [Credentials.Write]. It returns
// [ErrLoosePermissions] unless the file's mode gives nothing to group and others.
func ReadCredentials(path string) (Credentials, error) {
	f, err := os.Open(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("open credentials: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Credentials{}, fmt.Errorf("inspect credentials %s: %w", path, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Credentials{}, fmt.Errorf("read credentials %s (mode %04o): %w", path, info.Mode().Perm(), ErrLoosePermissions)
	}
	var file credentialsFile
	if err := yaml.NewDecoder(f, yaml.Strict()).Decode(&file); err != nil {
		return Credentials{}, fmt.Errorf("parse credentials %s: %w", path, err)
	}
	c := Credentials{
		Principal: events.Principal{Profile: file.Profile, Name: file.Name, Role: file.Role},
		Seed:      []byte(file.Seed),
	}
	if err := c.validate(); err != nil {
		return Credentials{}, fmt.Errorf("read credentials %s: %w", path, err)
	}
	return c, nil
}

// Write makes the file path with mode 0600. It fails with an error wrapping
// [fs.ErrExist] if there is such a file.
func (c Credentials) Write(path string) error {
	if err := c.validate(); err != nil {
		return fmt.Errorf("write credentials %s: %w", path, err)
	}
	b, err := yaml.Marshal(credentialsFile{
		Profile: c.Principal.Profile, Name: c.Principal.Name, Role: c.Principal.Role, Seed: string(c.Seed),
	})
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write credentials: %w", err)
	}
	if err != nil {
		return fmt.Errorf("create credentials: %w", err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write credentials %s: %w", path, err)
	}
	return nil
}

func (c Credentials) validate() error {
	if err := c.Principal.Validate(); err != nil {
		return err
	}
	if _, err := nkeys.FromSeed(c.Seed); err != nil {
		return fmt.Errorf("seed of principal %s: %w", c.Principal.Name, err)
	}
	return nil
}
