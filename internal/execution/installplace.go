package execution

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"keryx/events"
)

// Where an executor keeps packages, below its home:
//
//	packages/<key>/<run>        what a run that succeeded has left
//	packages/<key>/<run>.part   what a run is making
//	packages/<key>/current      a link to what is installed; a convenience, made from the log
//	packages/<key>/.lock        held while a run goes on
//	setups/<run>/               the run's private copy of the package, its HOME and TMPDIR
const (
	packagesDir = "packages"
	setupsDir   = "setups"
	partSuffix  = ".part"
	currentLink = "current"
	lockName    = ".lock"
)

// installPlace is where one run works. Close it.
type installPlace struct {
	pack, work string
	run        events.RunID
	account    *account // who the setup runs as
	lock       *os.File
}

// prepare checks a plan and makes a place for its run.
func (x *installer) prepare(ctx context.Context, plan events.SetupPlan) (*installPlace, error) {
	if err := x.check(plan); err != nil {
		return nil, err
	}
	p := &installPlace{
		pack: filepath.Join(x.home, packagesDir, string(plan.Key)), work: filepath.Join(x.home, setupsDir, string(plan.Run)), run: plan.Run,
		account: x.accountFor(plan.Target),
	}
	if err := p.make(ctx); err != nil {
		return nil, errors.Join(err, p.close(fateDiscard))
	}
	return p, nil
}

// accountFor is who commands of a target run as.
func (x *installer) accountFor(name events.TargetName) *account {
	t, err := x.service.tenants.find(name)
	if err != nil {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.current == nil {
		return nil
	}
	return t.current.account
}

func (p *installPlace) make(ctx context.Context) error {
	private := fs.FileMode(0o700)
	if p.account.switches() != nil {
		private = 0o711 // its user passes through
	}
	if err := os.MkdirAll(p.pack, private|0o055); err != nil {
		return fmt.Errorf("make a place for a package: %w", err)
	}
	if err := p.takeLock(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(p.work, private); err != nil {
		return fmt.Errorf("make a place for a setup: %w", err)
	}
	for _, dir := range []string{p.out(), p.home(), p.tmp()} {
		if err := p.own(dir); err != nil {
			return fmt.Errorf("make a place for a setup: %w", err)
		}
	}
	return nil
}

// own makes a directory that the setup's user owns.
func (p *installPlace) own(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if u := p.account.switches(); u != nil {
		return os.Chown(dir, int(u.UID), int(u.GID))
	}
	return nil
}

// lockFor is how long a run waits for the one before to tidy up, whose end is known
// before that.
const lockFor = 10 * time.Second

// takeLock keeps others of this home from installing the package meanwhile.
func (p *installPlace) takeLock(ctx context.Context) error {
	f, err := os.OpenFile(filepath.Join(p.pack, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock a package: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockFor)
	defer cancel()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			p.lock = f
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return errors.Join(fmt.Errorf("lock a package: %w", err), f.Close())
		}
		if sleep(ctx, lookAgain) != nil {
			return errors.Join(events.Errorf(events.CodeBusy, "another process installs %s", filepath.Base(p.pack)), f.Close())
		}
	}
}

func (p *installPlace) out() string   { return filepath.Join(p.pack, string(p.run)+partSuffix) }
func (p *installPlace) done() string  { return filepath.Join(p.pack, string(p.run)) }
func (p *installPlace) files() string { return filepath.Join(p.work, "package") }
func (p *installPlace) home() string  { return filepath.Join(p.work, "home") }
func (p *installPlace) tmp() string   { return filepath.Join(p.work, "tmp") }

// complete puts the result, on disk, where it stays if the bus takes it.
func (p *installPlace) complete() (string, error) {
	if err := syncTree(p.out()); err != nil {
		return "", fmt.Errorf("store what was installed: %w", err)
	}
	if err := os.Rename(p.out(), p.done()); err != nil {
		return "", fmt.Errorf("store what was installed: %w", err)
	}
	return p.done(), syncDir(p.pack)
}

// clear takes away what only the run needed.
func (p *installPlace) clear() error { return removeTree(p.work) }

// close keeps the result or takes it away, and unlocks the package. What may be on record
// stays, and is not made current by guess.
func (p *installPlace) close(what fate) error {
	var err error
	if p.lock != nil {
		err = removeTree(p.out())
		switch what {
		case fateKeep:
			err = errors.Join(err, pointTo(p.pack, string(p.run)))
		case fateDiscard:
			err = errors.Join(err, removeTree(p.done()))
		}
		err = errors.Join(err, p.lock.Close())
	}
	return errors.Join(err, p.clear())
}

// pointTo makes the link current of a package, in one step.
func pointTo(pack, run string) error {
	next := filepath.Join(pack, ".next-"+run)
	if err := os.Symlink(run, next); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(next, filepath.Join(pack, currentLink))
}

// removeTree removes a directory whose files may not be writable.
func removeTree(dir string) error {
	if !exists(dir) {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil // what cannot be looked at shows below
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// syncTree makes sure that all below a directory is on disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return syncDir(path)
	})
}

// syncDir syncs a directory, or a file.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
