package execution

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/targets"
)

const (
	// lookPackages is how often the packages are looked at although nothing was heard of
	// them: a word may be lost with a connection.
	lookPackages = 30 * time.Second
	// packageVar stands for the directory of a package in what its targets declare.
	packageVar = "${PACKAGE}"
)

// followPackages tells which targets the enabled packages of this home bring, now and at
// each change, until ctx ends.
func (x *installer) followPackages(ctx context.Context, out chan<- []targets.Declaration) {
	s := x.service
	if x.home == "" {
		return
	}
	nc := s.bus.NATS()
	sub, err := nc.Subscribe(events.LiveSubject(s.bus.Principal().Profile, events.ScopeProfile), func(m *nats.Msg) {
		if strings.HasPrefix(m.Header.Get("ce-type"), "keryx.package.") {
			signal(x.changed)
		}
	})
	if err != nil {
		s.cfg.Logger.Error("follow packages", "error", err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only once the connection is gone
	again := nc.StatusChanged(nats.CONNECTED)
	defer nc.RemoveStatusListener(again)
	var last []targets.Declaration
	for {
		next, err := x.brought(ctx)
		if err == nil && !reflect.DeepEqual(last, next) {
			select {
			case out <- next:
				last = next
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-x.changed:
		case <-again:
		case <-time.After(lookPackages):
		}
	}
}

// brought are the targets of the packages that are enabled and, where they have to be, set
// up in this home.
func (x *installer) brought(ctx context.Context) ([]targets.Declaration, error) {
	var list events.Packages
	if err := insist(ctx, x.service.bus, x.service.cfg.Logger, events.CmdPackageList, events.PackageList{}, &list); err != nil {
		return nil, err
	}
	var out []targets.Declaration
	for _, p := range list.Packages {
		if !p.Enabled {
			continue
		}
		dir, specs, revision := p.Package.Dir, p.Package.Targets, p.Package.Revision
		if p.Package.Setup != nil {
			if p.Installed == nil || p.Installed.Home != x.home {
				continue
			}
			dir, specs, revision = p.Installed.Path, p.Installed.Targets, p.Installed.Revision
		}
		for _, spec := range specs {
			spec = located(spec, dir)
			spec.Package = &events.PackageRef{Key: p.Package.Key, Revision: revision}
			out = append(out, targets.Declaration{Spec: spec})
		}
	}
	return out, nil
}

// located puts a package's directory where its target names it.
func located(spec events.TargetSpec, dir string) events.TargetSpec {
	put := func(s string) string { return strings.ReplaceAll(s, packageVar, dir) }
	spec.Cwd = put(spec.Cwd)
	env := make(map[string]string, len(spec.EnvSet))
	for name, value := range spec.EnvSet {
		env[name] = put(value)
	}
	spec.EnvSet = env
	prefix := make([]string, 0, len(spec.CommandPrefix))
	for _, arg := range spec.CommandPrefix {
		prefix = append(prefix, put(arg))
	}
	spec.CommandPrefix = prefix
	return spec
}

// beside adds what packages bring to what is declared for the executor itself, whose names
// win.
func beside(own, brought []targets.Declaration) []targets.Declaration {
	taken := make(map[events.TargetName]bool, len(own))
	out := append([]targets.Declaration(nil), own...)
	for _, d := range own {
		taken[d.Spec.Name] = true
	}
	for _, d := range brought {
		if !taken[d.Spec.Name] {
			taken[d.Spec.Name] = true
			out = append(out, d)
		}
	}
	return out
}
