package execution

import (
	"fmt"

	"keryx/events"
	"keryx/internal/privdir"
	"keryx/internal/targets"
)

// offer is a target as it is offered at one generation. It does not change: what runs
// keeps the one under which it was launched.
type offer struct {
	spec    events.TargetSpec
	account *account // who commands run as
}

// forSession is the declaration as it is for one session: with directories of its own, if
// it is one per session. They are made when they are needed first.
func (o *offer) forSession(id events.SessionID) (events.TargetSpec, error) {
	spec := o.spec
	if !spec.PerSession {
		return spec, nil
	}
	var err error
	if spec.Cwd, err = privdir.Below(spec.Cwd, string(id), o.account.owner()); err != nil {
		return spec, err
	}
	if spec.RuntimeDir != "" {
		spec.RuntimeDir, err = privdir.Below(spec.RuntimeDir, string(id), o.account.owner())
	}
	return spec, err
}

// newOffer completes a declaration and looks its user up.
func newOffer(spec events.TargetSpec) (*offer, error) {
	if spec.Kind == "" {
		spec.Kind = "terminal"
	}
	if spec.Shell == "" {
		spec.Shell = "/bin/sh"
	}
	if err := targets.CheckSpec(spec); err != nil {
		return nil, fmt.Errorf("target %s: %w", spec.Name, err)
	}
	who, err := accountOf(spec.User)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", spec.Name, err)
	}
	return &offer{spec: spec, account: who}, nil
}
