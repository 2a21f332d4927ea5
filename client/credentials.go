package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
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

// ErrBadCredentials means that a credentials file does not hold credentials.
var ErrBadCredentials = errors.New("not a credentials file")

// ErrLoosePermissions means that others than its owner may read a credentials file.
var ErrLoosePermissions = errors.New("others than the owner have rights on the credentials file; chmod 600 it")

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

// String names the principal; the seed is never shown.
func (c Credentials) String() string {
	return fmt.Sprintf("%s %s of profile %s", c.Principal.Role, c.Principal.Name, c.Principal.Profile)
}

// GoString implements fmt.GoStringer, so that %#v shows no seed either.
func (c Credentials) GoString() string { return "client.Credentials{" + c.String() + "}" }

// LogValue implements slog.LogValuer.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// maxCredentials bounds what is read of a file: credentials have a few hundred bytes.
const maxCredentials = 64 << 10

// ReadCredentials reads a file written by [Credentials.Write]. It returns an error
// wrapping [ErrLoosePermissions] if the file's mode lets others than its owner use it.
// No error quotes the file, which holds a secret.
func ReadCredentials(path string) (c Credentials, err error) {
	f, err := os.Open(path)
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat() // of what is read, not of what the path means by now
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Credentials{}, fmt.Errorf("read credentials %s: not a regular file: %w", path, ErrBadCredentials)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Credentials{}, fmt.Errorf("read credentials %s (mode %04o): %w", path, info.Mode().Perm(), ErrLoosePermissions)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxCredentials))
	if err != nil {
		return Credentials{}, fmt.Errorf("read credentials: %w", err)
	}
	if c, err = parseCredentials(b); err != nil {
		return Credentials{}, fmt.Errorf("read credentials %s: %w: %w", path, ErrBadCredentials, err)
	}
	return c, nil
}

func parseCredentials(b []byte) (Credentials, error) {
	var f credentialsFile
	dec := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict())
	if err := dec.Decode(&f); errors.Is(err, io.EOF) {
		return Credentials{}, errors.New("the file is empty")
	} else if err != nil {
		return Credentials{}, errors.New(yaml.FormatError(err, false, false)) // the default form quotes lines
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Credentials{}, errors.New("something follows the credentials")
	}
	c := Credentials{Principal: events.Principal{Profile: f.Profile, Name: f.Name, Role: f.Role}, Seed: []byte(f.Seed)}
	return c, c.validate()
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

// Write writes the credentials to a new file of mode 0600, whole or not at all. An
// existing file is never overwritten: the error wraps [fs.ErrExist].
func (c Credentials) Write(path string) (err error) {
	if err := c.validate(); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
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
	_, werr := tmp.Write(b)
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
