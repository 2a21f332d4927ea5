package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"golang.org/x/sys/unix"

	"keryx/events"
)

// ErrNoPrincipal says that principals.yaml has no such principal.
var ErrNoPrincipal = errors.New("no such principal")

const editLockName = ".principals.lock"

// CreateUser makes a principal with a fresh key: its credentials go to the new file
// out, mode 0600, its public key into dir's principals.yaml. A running bus takes it
// from there. Errors are those of [AddPrincipal]; the file out must not exist.
func CreateUser(dir string, p events.Principal, out string) error {
	pair, public, err := newKey()
	if err != nil {
		return err
	}
	creds, err := credentials(p, pair)
	if err != nil {
		return err
	}
	if err := creds.Write(out); err != nil {
		return err
	}
	if err := AddPrincipal(dir, p, public); err != nil {
		return errors.Join(err, os.Remove(out))
	}
	return nil
}

// AddPrincipal writes a principal into dir's principals.yaml. It returns [*TakenError]
// if the profile has a principal of that name, and [*ReservedError] for a name of the
// bus itself.
func AddPrincipal(dir string, p events.Principal, publicKey string) error {
	if err := checkEntry(p, publicKey); err != nil {
		return fmt.Errorf("add principal: %w", err)
	}
	added := time.Now().UTC().Truncate(time.Second)
	entry := principalEntry{Profile: p.Profile, Name: p.Name, Role: p.Role, PublicKey: publicKey, Added: &added}
	return edit(dir, func(f *principalsFile) (textEdit, error) {
		f.Principals = append(f.Principals, entry)
		return func(doc *ast.File) error { return appendEntry(doc, entry) }, nil
	})
}

// RemovePrincipal takes a principal out of dir's principals.yaml; a running bus cuts
// its connections. It returns an error wrapping [ErrNoPrincipal] if there is none.
func RemovePrincipal(dir string, profile events.Profile, name events.PrincipalName) error {
	return edit(dir, func(f *principalsFile) (textEdit, error) {
		i := slices.IndexFunc(f.Principals, func(e principalEntry) bool { return e.Profile == profile && e.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("remove principal %s of profile %s: %w", name, profile, ErrNoPrincipal)
		}
		f.Principals = slices.Delete(f.Principals, i, i+1)
		return func(doc *ast.File) error { return deleteEntry(doc, i) }, nil
	})
}

// edit rewrites principals.yaml, one editor at a time. What change makes must be a
// valid file, or nothing is written.
func edit(dir string, change func(*principalsFile) (textEdit, error)) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make bus directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, editLockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open principals lock: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return errors.Join(fmt.Errorf("lock principals: %w", err), lock.Close())
	}
	return errors.Join(rewrite(filepath.Join(dir, principalsName), change), lock.Close())
}

func rewrite(path string, change func(*principalsFile) (textEdit, error)) error {
	file := principalsFile{Principals: []principalEntry{}}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read principals: %w", err)
	}
	if err == nil {
		if _, err := parsePrincipals(before); err != nil {
			return fmt.Errorf("edit %s: %w", path, err)
		}
		if err := yaml.Unmarshal(before, &file); err != nil {
			return fmt.Errorf("edit %s: %w", path, err)
		}
	}
	text, err := change(&file)
	if err != nil {
		return err
	}
	after, err := keepComments(before, file, text)
	if err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	if _, err := parsePrincipals(after); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	return writeAtomic(path, after)
}
