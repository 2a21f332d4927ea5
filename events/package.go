package events

import "time"

// PackageKey is a package's canonical name in its profile: the normalised name and the
// digest of the source, such as "ripgrep-3f9a8b7c12de".
type PackageKey string

// Revision is the SHA-256, in hexadecimal, of everything that was reviewed together.
type Revision string

// Package is what a package was when it was added: everything that its setup may run.
type Package struct {
	Key     PackageKey `json:"key"`
	Name    string     `json:"name"` // for people; several packages may share it
	Version string     `json:"version"`
	// Source says whose package it is, such as an address; it is part of the key.
	Source string `json:"source"`
	// Dir is where its files are, on the executor's machine.
	Dir string `json:"dir"`
	// Revision covers the manifest and every file.
	Revision Revision `json:"revision"`
	// Setup is absent when nothing has to be run before the package can be used.
	Setup *PackageSetup `json:"setup,omitempty"`
	// Targets are what it brings once it is enabled.
	Targets []TargetSpec `json:"targets,omitempty"`
	// Commands are the slash commands that it brings once it is enabled.
	Commands []PackageCommand `json:"commands,omitempty"`
	// DefaultEnabled enables the package when it is added; its setup waits all the same.
	DefaultEnabled bool          `json:"default_enabled,omitempty"`
	Files          []PackageFile `json:"files"` // by path
}

// PackageSetup is the entry point that installs a package's prerequisites.
type PackageSetup struct {
	// Command is the argument list; a first one with a slash is relative to the package.
	Command []string `json:"command"`
	// TimeoutMS ends the run with all that it started.
	TimeoutMS int64 `json:"timeout_ms"`
	// Needs are the programs that have to be there before.
	Needs []string `json:"needs,omitempty"`
}

// PackageCommand is a slash command that runs in one of the package's targets.
type PackageCommand struct {
	Name   string     `json:"name"` // without the slash
	Help   string     `json:"help"` // one line, for /help
	Target TargetName `json:"target"`
	// Command is the argument list; what follows the command's name becomes its last one.
	Command []string `json:"command"`
}

// PackageFile is one file of a package.
type PackageFile struct {
	Path       string `json:"path"` // relative, with slashes
	SHA256     string `json:"sha256"`
	Bytes      int64  `json:"bytes"`
	Executable bool   `json:"executable,omitempty"`
}

// PackageRef is a package as it was at one revision.
type PackageRef struct {
	Key      PackageKey `json:"key"`
	Revision Revision   `json:"revision"`
}

// PackageAdded makes a package known, or a new revision of it (scope _profile).
type PackageAdded struct {
	Package Package `json:"package"`
	// Enabled is true when the package is enabled from here on.
	Enabled bool `json:"enabled,omitempty"`
}

// PackageEnabled enables packages, from each session's next epoch or attach on (scope
// _profile). It runs nothing.
type PackageEnabled struct {
	Packages []PackageRef `json:"packages"`
}

// PackageDisabled disables packages, from each session's next epoch or attach on (scope
// _profile).
type PackageDisabled struct {
	Packages []PackageRef `json:"packages"`
}

// PackageRemoved forgets packages (scope _profile). What is installed is taken away by
// the executor.
type PackageRemoved struct {
	Packages []PackageRef `json:"packages"`
}

// AddPackage makes a package known to the profile, or a new revision of it. It runs
// nothing. Answer: [PackageRefs].
type AddPackage struct {
	Package Package `json:"package"`
	// Replace lets it take the place of what was added under its key from elsewhere.
	Replace bool `json:"replace,omitempty"`
}

// EnablePackages enables packages by key or, where only one has it, by name: all of
// them or none. Answer: [PackageRefs].
type EnablePackages struct {
	Packages []string `json:"packages"`
}

// DisablePackages disables packages, as [EnablePackages] enables them. Answer:
// [PackageRefs].
type DisablePackages struct {
	Packages []string `json:"packages"`
}

// RemovePackages forgets packages, all of them or none. A package whose setup runs
// cannot be removed. Answer: [PackageRefs].
type RemovePackages struct {
	Packages []string `json:"packages"`
}

// PackageRefs says which packages a command was about.
type PackageRefs struct {
	Packages []PackageRef `json:"packages"`
}

// PackageList asks for the profile's packages. Answer: [Packages].
type PackageList struct {
	// To is a session, for which each package says whether it is in effect.
	To string `json:"to,omitempty"`
}

// Packages is the list of packages, by key.
type Packages struct {
	Packages []PackageView `json:"packages"`
}

// PackageView is where a package stands.
type PackageView struct {
	Package Package `json:"package"`
	Enabled bool    `json:"enabled"`
	// ChangedAt is when it was enabled or disabled last.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// Installed is what the last setup that succeeded has left; absent for none.
	Installed *PackageInstall `json:"installed,omitempty"`
	// Run is the setup that runs now, or else the last one; absent for none.
	Run *SetupSummary `json:"run,omitempty"`
	// InEffect says whether the session that was asked about has the package now. It
	// differs from Enabled until the session's next epoch or attach.
	InEffect *bool `json:"in_effect,omitempty"`
}

// PackageInstall is what a setup that succeeded has left.
type PackageInstall struct {
	Revision Revision   `json:"revision"` // of the package
	Version  string     `json:"version"`
	Run      RunID      `json:"run"`
	Target   TargetName `json:"target"`
	Home     string     `json:"home"`
	Path     string     `json:"path"` // the directory
	// Targets are those that this revision of the package brings.
	Targets []TargetSpec `json:"targets,omitempty"`
	At      time.Time    `json:"at"`
}
