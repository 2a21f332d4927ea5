package setup

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"keryx/events"
)

// ManifestName is the file that makes a directory a package.
const ManifestName = "keryx-package.yaml"

const (
	// DefaultTimeout is how long a setup may take that does not say.
	DefaultTimeout = 10 * time.Minute
	// MaxTimeout bounds what it may say: a lock is held all the while.
	MaxTimeout = 24 * time.Hour
)

// ErrManifest is wrapped by every error about the content of a manifest. Where the
// content is not as the form wants it, the text names line and column.
var ErrManifest = errors.New("malformed package manifest")

// Manifest is the content of keryx-package.yaml.
type Manifest struct {
	// Name is for people, Version free text, Source says whose package it is.
	Name    string `yaml:"name"`
	Version string `yaml:"version"`
	Source  string `yaml:"source"`
	// Setup is nil when nothing has to be run.
	Setup *struct {
		Command []string      `yaml:"command"`
		Timeout time.Duration `yaml:"timeout"`
		Needs   []string      `yaml:"needs"`
	} `yaml:"setup"`
	Targets []struct {
		Name          events.TargetName `yaml:"name"`
		Cwd           string            `yaml:"cwd"`
		Shell         string            `yaml:"shell"`
		EnvSet        map[string]string `yaml:"env_set"`
		EnvUnset      []string          `yaml:"env_unset"`
		CommandPrefix []string          `yaml:"command_prefix"`
	} `yaml:"targets"`
	Commands []struct {
		Name    string            `yaml:"name"`
		Help    string            `yaml:"help"`
		Target  events.TargetName `yaml:"target"`
		Command []string          `yaml:"command"`
	} `yaml:"commands"`
	DefaultEnabled bool `yaml:"default_enabled"`
}

// ParseManifest reads a manifest. An unknown key, a value of the wrong type or a rule
// that is broken is an error wrapping [ErrManifest].
func ParseManifest(b []byte) (Manifest, error) {
	var m Manifest
	if len(bytes.TrimSpace(b)) == 0 {
		return m, fmt.Errorf("%w: the file is empty", ErrManifest)
	}
	if err := yaml.UnmarshalWithOptions(b, &m, yaml.Strict()); err != nil {
		return Manifest{}, fmt.Errorf("%w: %s", ErrManifest, yaml.FormatError(err, false, true))
	}
	return m, m.check()
}

func (m Manifest) check() error {
	for field, value := range map[string]string{"name": m.Name, "version": m.Version, "source": m.Source} {
		if strings.TrimSpace(value) == "" || strings.ContainsFunc(value, isControl) {
			return broken(field, "is needed, on one line")
		}
	}
	if Normalise(m.Name) == "" {
		return broken("name", "%q has no letter a-z and no digit", m.Name)
	}
	if err := m.checkSetup(); err != nil {
		return err
	}
	if err := m.checkTargets(); err != nil {
		return err
	}
	return m.checkCommands()
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func broken(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrManifest, field, fmt.Sprintf(format, args...))
}

func (m Manifest) checkSetup() error {
	s := m.Setup
	if s == nil {
		return nil
	}
	if len(s.Command) == 0 || s.Command[0] == "" {
		return broken("setup.command", "is an argument list that begins with a program")
	}
	if strings.Contains(s.Command[0], "/") && !path.IsAbs(s.Command[0]) && !localPath(s.Command[0]) {
		return broken("setup.command", "%q leads out of the package", s.Command[0])
	}
	if s.Timeout < 0 || s.Timeout > MaxTimeout {
		return broken("setup.timeout", "%s is not between 0 and %s", s.Timeout, MaxTimeout)
	}
	for i, need := range s.Needs {
		if need == "" || strings.ContainsAny(need, "/\x00") {
			return broken(fmt.Sprintf("setup.needs[%d]", i), "%q is not the name of a program", need)
		}
	}
	return nil
}

func localPath(p string) bool {
	clean := path.Clean(p)
	return !path.IsAbs(clean) && clean != ".." && !strings.HasPrefix(clean, "../")
}

func (m Manifest) checkTargets() error {
	seen := make(map[events.TargetName]bool)
	for i, t := range m.Targets {
		field := fmt.Sprintf("targets[%d].name", i)
		if err := t.Name.Validate(); err != nil {
			return broken(field, "%v", err)
		}
		if seen[t.Name] {
			return broken(field, "%q is there twice", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

var commandName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

func (m Manifest) checkCommands() error {
	seen := make(map[string]bool)
	for i, c := range m.Commands {
		field := fmt.Sprintf("commands[%d]", i)
		switch {
		case !commandName.MatchString(c.Name):
			return broken(field+".name", "%q does not match %s", c.Name, commandName)
		case seen[c.Name]:
			return broken(field+".name", "%q is there twice", c.Name)
		case strings.TrimSpace(c.Help) == "" || strings.ContainsFunc(c.Help, isControl):
			return broken(field+".help", "is needed, on one line")
		case len(c.Command) == 0 || c.Command[0] == "":
			return broken(field+".command", "is an argument list that begins with a program")
		case c.Target.Validate() != nil:
			return broken(field+".target", "%v", c.Target.Validate())
		}
		seen[c.Name] = true
	}
	return nil
}

// Package returns the package of a manifest whose directory and files are known.
func (m Manifest) Package(dir string, files []events.PackageFile) events.Package {
	p := events.Package{
		Key: KeyOf(m.Name, m.Source), Name: m.Name, Version: m.Version, Source: m.Source, Dir: dir,
		Files: files, Revision: ContentRevision(files), DefaultEnabled: m.DefaultEnabled,
	}
	if s := m.Setup; s != nil {
		timeout := s.Timeout
		if timeout == 0 {
			timeout = DefaultTimeout
		}
		p.Setup = &events.PackageSetup{Command: s.Command, TimeoutMS: timeout.Milliseconds(), Needs: s.Needs}
	}
	for _, t := range m.Targets {
		p.Targets = append(p.Targets, events.TargetSpec{
			Name: t.Name, Kind: "terminal", Cwd: t.Cwd, Shell: t.Shell, EnvSet: t.EnvSet, EnvUnset: t.EnvUnset,
			CommandPrefix: t.CommandPrefix,
		})
	}
	for _, c := range m.Commands {
		p.Commands = append(p.Commands, events.PackageCommand{Name: c.Name, Help: c.Help, Target: c.Target, Command: c.Command})
	}
	return p
}
