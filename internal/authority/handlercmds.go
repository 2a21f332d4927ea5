package authority

import (
	"context"
	"slices"

	"keryx/events"
	"keryx/internal/handlers"
	"keryx/internal/lifecycle"
)

const idInvocation idKind = 'i'

// registerHandler declares what a process carries out that has its lease of kind handler.
func (l *profileLane) registerHandler(ctx context.Context, req *request, d events.RegisterHandler) (any, error) {
	own := events.HandlerRegistered{Handler: events.Handler{Principal: req.caller.Name, Instance: d.Instance}, LeaseFence: d.LeaseFence}
	if live := l.t.liveHandler(l.profile); !live(own) {
		return nil, events.Errorf(events.CodeLeaseLost, "%s does not hold %s under fence %s", req.caller.Name, handlerKey(l.profile, req.caller.Name), d.LeaseFence)
	}
	fact, fresh, err := l.handlers.Register(req.caller.Name, d, l.t.liveHandler(l.profile))
	if err != nil || !fresh {
		return fact, err
	}
	return fact, l.append(ctx, originOf(req), events.TypeHandlerRegistered, fact)
}

func handlerKey(p events.Profile, name events.PrincipalName) events.LeaseKey {
	return events.LeaseKey{Profile: p, Kind: events.LeaseHandler, Name: string(name)}
}

// liveHandler says of a registration whether its process holds the lease under which it
// was made.
func (t *term) liveHandler(p events.Profile) handlers.Live {
	return func(h events.HandlerRegistered) bool {
		rec, fence, ok := t.granter.Current(handlerKey(p, h.Principal))
		return ok && rec.State == events.LeaseHeld && rec.Holder == h.Principal && rec.Instance == h.Instance && fence == h.LeaseFence
	}
}

// handlerPlace is what carries out a slash command now.
func (t *term) handlerPlace(p events.Profile, name events.CommandName) lifecycle.HandlerPlace {
	l := t.profiles.get(p)
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	h, spec, ok := l.handlers.Find(name, t.liveHandler(p))
	if !ok {
		return lifecycle.HandlerPlace{Missing: events.Errorf(events.CodeUnknownCommand, "no process that is there carries out /%s", name)}
	}
	return lifecycle.HandlerPlace{Handler: h, Spec: spec}
}

// roleOf is the role that counts for a request: that of its token, if it has one.
func (t *term) roleOf(req *request) events.Role {
	if req.actingFor != "" {
		if tok, ok := t.profiles.get(req.caller.Profile).token(req.actingFor); ok {
			return tok.Role
		}
	}
	return req.caller.Role
}

// commandList answers command.list with what is there for this surface and caller.
func (t *term) commandList(req *request, d events.CommandList) events.CommandMenu {
	surface, role := d.Surface, t.roleOf(req)
	if surface == "" {
		surface = events.SurfaceHTTP
	}
	out := events.CommandMenu{Commands: []events.CommandItem{}}
	if entry, ok := events.Find(events.CmdCommandInvoke); !ok || !slices.Contains(entry.Roles, role) {
		return out // it can give none
	}
	if surface != events.SurfaceHTTP {
		out.Commands = events.GatewayCommands()
	}
	p := req.caller.Profile
	l := t.profiles.get(p)
	l.stateMu.RLock()
	defer l.stateMu.RUnlock()
	out.Commands = append(out.Commands, l.handlers.List(func(c events.CommandSpec) bool {
		return lifecycle.Offers(c, surface) && (len(c.Roles) == 0 || slices.Contains(c.Roles, role))
	}, t.liveHandler(p))...)
	return out
}

// handlerLost ends the slash commands that a process had which is gone.
func (t *term) handlerLost(p events.Profile, h events.Handler) {
	for l := range t.sessions.all(p) {
		var concerned bool
		l.view(func(s *lifecycle.State) { concerned = s.Invokes(h) })
		if concerned || l.isStale() {
			l.add(0, func(ctx context.Context) { l.internal(ctx, lifecycle.HandlerLost{Handler: h}) })
		}
	}
}

// invocation is the slash command that a request answers; empty if it answers none.
func (r *request) invocation() events.CommandID {
	if d, ok := r.data.(events.AnswerCommand); ok {
		return d.Invocation
	}
	return ""
}

func (t *term) invocationLane(p events.Profile, id events.CommandID) (*lane, error) {
	if l := t.sessions.byID(idInvocation, p, string(id)); l != nil {
		return l, nil
	}
	return nil, lifecycle.UnknownInvocation(id)
}

// shownInvocation answers command.show.
func (l *lane) shownInvocation(id events.CommandID) (events.InvocationView, error) {
	v, known := l.state.Invocation(id)
	if !known {
		return v, lifecycle.UnknownInvocation(id)
	}
	return v, nil
}
