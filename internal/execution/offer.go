package execution

import (
	"fmt"
	"path/filepath"

	"keryx/events"
)

// offer is a target as it is offered at one generation. It does not change: what runs
// keeps the one under which it was launched.
type offer struct {
	spec    events.TargetSpec
	account *account // who commands run as
}

// newOffer completes a declaration and looks its user up.
func newOffer(spec events.TargetSpec) (*offer, error) {
	if err := spec.Name.Validate(); err != nil {
		return nil, err
	}
	if spec.Kind == "" {
		spec.Kind = "terminal"
	}
	if spec.Shell == "" {
		spec.Shell = "/bin/sh"
	}
	if spec.Cwd != "" && !filepath.IsAbs(spec.Cwd) {
		return nil, fmt.Errorf("working directory %q of target %s is not absolute", spec.Cwd, spec.Name)
	}
	who, err := accountOf(spec.User)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", spec.Name, err)
	}
	return &offer{spec: spec, account: who}, nil
}
