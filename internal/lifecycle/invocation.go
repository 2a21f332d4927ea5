package lifecycle

import (
	"slices"
	"strings"
	"time"

	"keryx/events"
)

// Bounds of slash commands.
const (
	// InvocationLife is how long a handler may take, unless it declared otherwise.
	InvocationLife = time.Minute
	// MaxInvocations is how many slash commands of a session may be under way at once.
	MaxInvocations = 64
	// MaxInvoked is how many of a session that have ended are remembered.
	MaxInvoked = 64
	// MaxRawArgs is the most bytes that the arguments of one may have.
	MaxRawArgs = 64 << 10
	// MaxReply is the most bytes that the answer to one may have.
	MaxReply = 256 << 10
)

// HandlerPlace is what carries out a slash command, or why nothing does.
type HandlerPlace struct {
	Handler events.Handler
	Spec    events.CommandSpec
	// Missing is set when no live process has the command.
	Missing error
}

// invocations are the slash commands of a session.
type invocations struct {
	Open  []invocation            `json:"open,omitempty"` // oldest first
	Ended []events.InvocationView `json:"ended,omitempty"`
}

// invocation is a slash command that is under way.
type invocation struct {
	events.InvocationView
	Async     bool      `json:"async,omitempty"`
	ExpiresAt time.Time `json:"expires_at"`
}

// invoke records a slash command for its handler. Unless it is async, its answer comes with
// the outcome.
func (s *State) invoke(c Command, d events.InvokeCommand) (Decision, error) {
	if v, ok := s.invocations.find(c.ID); ok && !v.Async {
		return Decision{Wait: true}, nil
	}
	for _, err := range []error{s.checkOpen(), c.Handler.Missing, c.Handler.allows(c.By, d.Surface), checkText("/raw_args", d.RawArgs, MaxRawArgs)} {
		if err != nil {
			return Decision{}, err
		}
	}
	if len(s.invocations.Open) >= MaxInvocations {
		return Decision{}, events.Errorf(events.CodeQueueFull, "%d commands are under way in session %s", MaxInvocations, s.Session)
	}
	draft := s.draft(events.TypeCommandInvoked, events.CommandInvoked{
		Invocation: c.ID, Name: d.Name, RawArgs: d.RawArgs, Surface: d.Surface, Handler: c.Handler.Handler, Async: d.Async,
		Fields: s.fieldsFor(c.Handler.Spec, d.Surface), ExpiresAt: c.Now.Add(or(millis(c.Handler.Spec.TimeoutMS), InvocationLife)).UTC(),
	})
	return Decision{Drafts: []Draft{draft}, Wait: !d.Async}, nil
}

// allows refuses roles and surfaces for which the command is not there.
func (p HandlerPlace) allows(by events.Role, surface string) error {
	switch {
	case !Offers(p.Spec, surface):
		return events.Errorf(events.CodeUnknownCommand, "/%s is not there on surface %q", p.Spec.Name, surface)
	case len(p.Spec.Roles) > 0 && !slices.Contains(p.Spec.Roles, by):
		return events.Errorf(events.CodeForbidden, "/%s is not for role %s", p.Spec.Name, by)
	}
	return nil
}

// Offers reports whether a slash command is there on a surface.
func Offers(spec events.CommandSpec, surface string) bool {
	return slices.Contains(spec.Surfaces, surface) || len(spec.Surfaces) == 0 && surface != events.SurfaceHTTP
}

func checkText(path, text string, most int) error {
	if len(text) <= most {
		return nil
	}
	e := events.Errorf(events.CodeTooLarge, "%d bytes, at most %d are taken", len(text), most)
	e.Path = path
	return e
}

// fieldsFor is what a handler is told: what it accepts, null where nothing is known.
func (s *State) fieldsFor(spec events.CommandSpec, surface string) events.Raw {
	n := s.CurrentNames()
	known := map[events.CommandField]string{
		events.FieldSessionID: string(n.SessionID), events.FieldGatewaySessionKey: string(n.GatewaySessionKey),
		events.FieldRuntimeSessionID: string(n.RuntimeSessionID), events.FieldStoredSessionID: string(n.StoredSessionID),
		events.FieldTaskID: string(n.TaskID), events.FieldProfile: string(s.Profile), events.FieldSurface: surface,
	}
	out := make(map[events.CommandField]*string, len(spec.Fields))
	for _, f := range spec.Fields {
		out[f] = nil
		if value := known[f]; value != "" {
			out[f] = &value
		}
	}
	return encode(out)
}

// answerInvocation records a handler's word, once.
func (s *State) answerInvocation(c Command, d events.AnswerCommand) (Decision, error) {
	v, ok := s.invocations.find(d.Invocation)
	if !ok || v.Handler != (events.Handler{Principal: c.Caller.Name, Instance: d.Instance}) {
		if slices.ContainsFunc(s.invocations.Ended, func(v events.InvocationView) bool { return v.Invocation == d.Invocation }) {
			return Decision{}, events.Errorf(events.CodeAlreadyAnswered, "command %s has ended", d.Invocation)
		}
		return Decision{}, UnknownInvocation(d.Invocation)
	}
	if err := checkText("/reply", d.Reply, MaxReply); err != nil {
		return Decision{}, err
	}
	if d.Error != nil {
		return one(s.draft(events.TypeCommandFailed, events.CommandFailed{Invocation: v.Invocation, Name: v.Name, Error: *d.Error}))
	}
	return one(s.draft(events.TypeCommandCompleted, events.CommandCompleted{Invocation: v.Invocation, Name: v.Name, Reply: d.Reply}))
}

// UnknownInvocation refuses the id of a slash command that nobody gave.
func UnknownInvocation(id events.CommandID) *events.Error {
	return events.Errorf(events.CodeUnknownInvocation, "no slash command %s was given to you here", id)
}

// handlerLost fails the next slash command of a process that is gone.
func (s *State) handlerLost(d HandlerLost) (Decision, error) {
	for _, v := range s.invocations.Open {
		if v.Handler == d.Handler {
			return step(s.draftFailed(v, events.Errorf(events.CodeUnavailable, "the process of %s is gone; whether /%s was carried out is not known, and it is not given again", v.Handler.Principal, v.Name)))
		}
	}
	return Decision{}, nil
}

// silentHandler is the end of a slash command whose handler took too long.
func (s *State) silentHandler(now time.Time) (Draft, bool) {
	for _, v := range s.invocations.Open {
		if !now.Before(v.ExpiresAt) {
			return s.draftFailed(v, events.Errorf(events.CodeTimeout, "%s did not answer in time; whether /%s was carried out is not known, and it is not given again", v.Handler.Principal, v.Name)), true
		}
	}
	return Draft{}, false
}

func (s *State) nextSilence() time.Time {
	var next time.Time
	for _, v := range s.invocations.Open {
		if next.IsZero() || v.ExpiresAt.Before(next) {
			next = v.ExpiresAt
		}
	}
	return next
}

func (s *State) draftFailed(v invocation, e *events.Error) Draft {
	return s.own(events.TypeCommandFailed, events.CommandFailed{Invocation: v.Invocation, Name: v.Name, Error: *e})
}

// Invokes reports whether a slash command is under way at a handler.
func (s *State) Invokes(h events.Handler) bool {
	return slices.ContainsFunc(s.invocations.Open, func(v invocation) bool { return v.Handler == h })
}

// Invocation returns what is known of a slash command, also for some time after its end.
func (s *State) Invocation(id events.CommandID) (events.InvocationView, bool) {
	if v, ok := s.invocations.find(id); ok {
		return v.InvocationView, true
	}
	for _, v := range s.invocations.Ended {
		if v.Invocation == id {
			return v, true
		}
	}
	return events.InvocationView{}, false
}

func (x *invocations) find(id events.CommandID) (invocation, bool) {
	for _, v := range x.Open {
		if v.Invocation == id {
			return v, true
		}
	}
	return invocation{}, false
}

func sendInvoke(d events.CommandInvoked, now time.Time) []Effect {
	return []Effect{SendInvoke{Handler: d.Handler, Order: events.InvokeOrder{
		RawArgs: d.RawArgs, Fields: d.Fields, Name: d.Name, Invocation: d.Invocation,
		DeadlineMS: max(0, d.ExpiresAt.Sub(now).Milliseconds()),
	}}}
}

func (s *State) foldCommandInvoked(r events.Record, d events.CommandInvoked) {
	if _, known := s.Invocation(d.Invocation); known || d.Invocation == "" {
		return
	}
	id := events.CommandID(strings.Clone(string(d.Invocation)))
	v := invocation{Async: d.Async, ExpiresAt: d.ExpiresAt, InvocationView: events.InvocationView{
		Invocation: id, Session: s.Session, Name: d.Name, Handler: d.Handler, State: events.InvocationRunning,
	}}
	s.invocations.Open = append(s.invocations.Open, v)
	if d.Async {
		s.keepAnswer(r, v.InvocationView)
	}
}

func (s *State) foldCommandCompleted(r events.Record, d events.CommandCompleted) {
	s.endInvocation(r, d.Invocation, events.InvocationCompleted, d.Reply, nil)
}

func (s *State) foldCommandFailed(r events.Record, d events.CommandFailed) {
	s.endInvocation(r, d.Invocation, events.InvocationFailed, "", &d.Error)
}

// endInvocation answers the handler, and whoever waits for the outcome.
func (s *State) endInvocation(r events.Record, id events.CommandID, to events.InvocationState, reply string, failed *events.Error) {
	s.keepAnswer(r, events.Done{Sequence: r.Sequence})
	v, ok := s.invocations.find(id)
	if !ok {
		return
	}
	v.State, v.Reply, v.Error = to, reply, failed
	if !v.Async {
		s.answers.set(v.Invocation, answer{at: r.Time, ordinal: r.Ordinal, value: v.InvocationView})
	}
	s.invocations.Open = slices.DeleteFunc(s.invocations.Open, func(o invocation) bool { return o.Invocation == id })
	s.invocations.Ended = append(s.invocations.Ended, v.InvocationView)
	if extra := len(s.invocations.Ended) - MaxInvoked; extra > 0 {
		s.invocations.Ended = slices.Delete(s.invocations.Ended, 0, extra)
	}
}
