package lifecycle

import "keryx/events"

// Effect is something to be told to a host or an executor: one of [SendOffer],
// [SendSteer], [SendDetached], [SendStart], [SendStop], [SendQuestion] and [SendInvoke]. Telling it twice does no harm, but
// for [SendInvoke], which [Resume] never asks for.
type Effect interface{ effect() }

// SendOffer tells a host instance of an offer.
type SendOffer struct {
	Host     events.PrincipalName
	Instance events.Instance
	Offer    events.Offer
}

// SendSteer tells a host instance of items for the running turn.
type SendSteer struct {
	Host     events.PrincipalName
	Instance events.Instance
	Steer    events.Steer
}

// SendDetached tells a host instance that it no longer drives the session.
type SendDetached struct {
	Host     events.PrincipalName
	Instance events.Instance
	Order    events.HostDetach
}

// SendStart tells an executor instance to run.
type SendStart struct {
	Executor events.PrincipalName
	Instance events.Instance
	Order    events.StartOrder
}

// SendStop tells an executor instance to end an exec.
type SendStop struct {
	Executor events.PrincipalName
	Instance events.Instance
	Order    events.StopOrder
}

// SendQuestion asks a process whether a tool may run.
type SendQuestion struct {
	Judge    events.Judge
	Question events.PolicyQuestion
}

// SendInvoke gives a slash command to its handler, once.
type SendInvoke struct {
	Handler events.Handler
	Order   events.InvokeOrder
}

func (SendInvoke) effect()   {}
func (SendQuestion) effect() {}
func (SendOffer) effect()    {}
func (SendSteer) effect()    {}
func (SendDetached) effect() {}
func (SendStart) effect()    {}
func (SendStop) effect()     {}

// Effects returns what to tell others after r was folded into s. Of a batch, fold and
// ask one event after the other.
func Effects(s *State, r events.Record) []Effect {
	switch r.Type {
	case events.TypeContinuationOffered:
		return s.sendOffer()
	case events.TypeSessionDetached:
		d, err := events.DataOf[events.SessionDetached](r)
		if err != nil || d.Reason == events.DetachRequested {
			return nil // the host asked and knows
		}
		return s.sendDetached(d.Reason)
	case events.TypeSessionFinalized:
		d, err := events.DataOf[events.SessionFinalized](r)
		if err != nil || d.Reset {
			return nil // the reset that follows says the rest
		}
		return append(s.sendDetached(events.DetachFinalized), s.sendStops("session finalized: "+d.Reason)...)
	case events.TypeSessionReset:
		return s.sendStops("session reset")
	case events.TypeExecRequested:
		if d, err := events.DataOf[events.ExecRequested](r); err == nil && d.Approval == nil { // else once it was approved
			return s.sendStart(d.Exec)
		}
	case events.TypeApprovalConsumed:
		if d, err := events.DataOf[events.ApprovalConsumed](r); err == nil {
			return s.sendStart(d.Exec)
		}
	case events.TypePolicyAsked:
		if d, err := events.DataOf[events.PolicyAsked](r); err == nil {
			return s.sendQuestion(d.Question)
		}
	case events.TypeCommandInvoked:
		if d, err := events.DataOf[events.CommandInvoked](r); err == nil {
			return sendInvoke(d, r.Time)
		}
	}
	return nil
}

// Resume returns what may not have been told, for when an authority becomes active.
func Resume(s *State) []Effect {
	var out []Effect
	if s.resends() { // any other host may have been told, and leaves the offer unresolved
		out = s.sendOffer()
	}
	for _, e := range s.execs.open {
		if !e.Started && !e.Stopping && !e.Carried && e.Awaiting == "" {
			out = append(out, s.sendStart(e.Request.Exec)...)
		}
	}
	for _, id := range s.questions.open {
		out = append(out, s.sendQuestion(id)...)
	}
	return append(out, s.sendStops("the epoch of the exec has ended")...)
}

func (s *State) sendOffer() []Effect {
	o, its, ok := s.Queue.Open()
	if !ok || s.Host == nil {
		return nil
	}
	if o.Turn != "" {
		return []Effect{SendSteer{Host: o.Host, Instance: o.Instance, Steer: events.Steer{
			Session: s.Session, Epoch: s.Epoch, Fence: s.Host.Fence, Offer: o.ID, Turn: o.Turn, Items: its,
			DeadlineMS: o.Deadline.Milliseconds(),
		}}}
	}
	return []Effect{SendOffer{Host: o.Host, Instance: o.Instance, Offer: events.Offer{
		Session: s.Session, Epoch: s.Epoch, Fence: s.Host.Fence, Offer: o.ID, Items: its,
		DeadlineMS: o.Deadline.Milliseconds(), Names: s.CurrentNames(),
	}}}
}

// sendDetached tells the host that was attached last.
func (s *State) sendDetached(reason events.DetachReason) []Effect {
	h := s.lastHost
	if h == nil || s.Host != nil {
		return nil
	}
	return []Effect{SendDetached{Host: h.Host, Instance: h.Instance, Order: events.HostDetach{
		Session: s.Session, Fence: h.Fence, Reason: reason,
	}}}
}

func (s *State) sendStart(id events.ExecID) []Effect {
	e, ok := s.execs.find(id)
	if !ok {
		return nil
	}
	sel := e.Request.Selection
	return []Effect{SendStart{Executor: sel.Executor, Instance: sel.Instance, Order: events.StartOrder{
		Session: s.Session, Epoch: s.Epoch, Request: e.Request, Names: s.CurrentNames(),
	}}}
}

func (s *State) sendQuestion(id events.CommandID) []Effect {
	q, ok := s.questions.get(id)
	if !ok {
		return nil
	}
	var out []Effect
	for _, j := range q.Asked.Judges {
		out = append(out, SendQuestion{Judge: j, Question: events.PolicyQuestion{
			Session: s.Session, Epoch: s.Epoch, Question: id, Turn: q.Asked.Turn, Host: q.Asked.Host, Tool: q.Asked.Tool,
			Digest: q.Asked.Digest, Names: q.Asked.Names, DeadlineMS: max(0, q.Asked.ExpiresAt.Sub(s.LastTime).Milliseconds()),
		}})
	}
	return out
}

func (s *State) sendStops(reason string) []Effect {
	var out []Effect
	for _, e := range s.execs.open {
		if e.Stopping && e.Awaiting == "" {
			out = append(out, s.sendStop(e, nil, reason))
		}
	}
	return out
}

func (s *State) sendStop(e Exec, graceMS *int64, reason string) Effect {
	sel := e.Request.Selection
	if graceMS == nil {
		graceMS = e.Request.Spec.GraceMS
	}
	return SendStop{Executor: sel.Executor, Instance: sel.Instance, Order: events.StopOrder{
		Session: s.Session, Exec: e.Request.Exec, GraceMS: graceMS, Reason: reason,
	}}
}
