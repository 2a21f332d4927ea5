package lifecycle

import (
	"keryx/events"
)

// Decide says what c comes to in s. It changes neither. Its error is *[events.Error]
// and means that nothing is to be done.
func Decide(s *State, c Command) (Decision, error) {
	if raw, ok := s.Answer(c.ID); ok {
		return Decision{Answer: raw}, nil
	}
	if !c.own() && s.answers.tooOld(c.Sent, c.Now) {
		return Decision{}, events.Errorf(events.CodeTooOld,
			"command %s of %s is older than what session %s remembers", c.ID, c.Sent.UTC(), s.Session)
	}
	if d, ok := c.Data.(events.Register); ok && !s.Exists() {
		return decideFirst(s, c, d)
	}
	if !s.Exists() {
		return Decision{}, events.Errorf(events.CodeUnknownSession, "no session %q", c.Session)
	}
	if s.Removed {
		return s.decideRemoved(c)
	}
	if s.clocks.idle != nil {
		return step(s.draftIdle()) // what is owed for the past comes before anything new
	}
	if d, ok := s.overdue(c.Now); ok {
		return step(d) // likewise: what changed or ran out before the command
	}
	if !c.own() && endsIdle(c.Data) && s.idleExpired(c.Now) {
		return s.ending(Decision{Drafts: []Draft{s.draftOwnFinalize(events.ReasonIdleExpired)}, Again: true})
	}
	return s.decide(c)
}

// decideRemoved answers commands about a session of which nothing is left.
func (s *State) decideRemoved(c Command) (Decision, error) {
	if _, again := c.Data.(events.Forget); again || c.own() {
		return answered(events.Done{Sequence: s.LastSequence})
	}
	return Decision{}, events.Errorf(events.CodeEpochEnded, "session %s was removed", s.Session).With("epoch", s.Epoch.String())
}

// endsIdle reports whether a command must find an epoch whose time is up ended.
func endsIdle(data any) bool {
	switch data.(type) {
	case events.Submit, events.Register, events.Alias, events.Attach, events.Reset, events.Finalize:
		return true
	}
	return false
}

func (s *State) decide(c Command) (Decision, error) {
	switch d := c.Data.(type) {
	case events.Register:
		return s.register(c, d)
	case events.Alias:
		return s.alias(c, d)
	case events.Attach:
		return s.attach(c, d)
	case events.Detach:
		return s.detach(c, d)
	case events.Reanchor:
		return s.reanchor(c, d)
	case events.Reset:
		return s.reset(c, d)
	case events.Finalize:
		return s.finalize(c, d)
	case events.Forget:
		return s.forget(d)
	case events.Submit:
		return s.submit(c, d)
	case events.Cancel:
		return s.cancel(c, d)
	case events.Edit:
		return s.edit(c, d)
	case events.Requeue:
		return s.requeue(c, d)
	case events.Discard:
		return s.discard(c, d)
	}
	return s.decidePolicy(c)
}

func (s *State) decidePolicy(c Command) (Decision, error) {
	switch d := c.Data.(type) {
	case events.SetPolicy:
		return s.setPolicy(c, d)
	case events.AskPolicy:
		return s.ask(c, d)
	case events.VotePolicy:
		return s.vote(c, d)
	case events.InvokeCommand:
		return s.invoke(c, d)
	case events.AnswerCommand:
		return s.answerInvocation(c, d)
	case events.GrantApproval:
		return s.grant(c, d)
	case events.DenyApproval:
		return s.deny(c, d)
	}
	return s.decideTurn(c)
}

func (s *State) decideTurn(c Command) (Decision, error) {
	switch d := c.Data.(type) {
	case events.Accept:
		return s.accept(c, d)
	case events.Decline:
		return s.decline(c, d)
	case events.End:
		return s.end(c, d)
	case events.Interrupt:
		return s.interrupt(c, d)
	}
	return s.decideExec(c)
}

func (s *State) decideExec(c Command) (Decision, error) {
	switch d := c.Data.(type) {
	case events.StartExec:
		return s.startExec(c, d)
	case events.StopExec:
		return s.stopExec(c, d)
	case events.ReportStarted:
		return s.reportStarted(c, d)
	case events.ReportRefused:
		return s.reportRefused(c, d)
	case events.ReportExited:
		return s.reportExited(c, d)
	case events.ReportLost:
		return s.reportLost(c, d)
	}
	return s.decideOwn(c)
}

func (s *State) decideOwn(c Command) (Decision, error) {
	if c.own() {
		switch d := c.Data.(type) {
		case HostLost:
			return s.hostLost(d)
		case ExecutorLost:
			return s.executorLost(d)
		case HandlerLost:
			return s.handlerLost(d)
		case UseApproval:
			return s.useApproval(c, d)
		case TurnTimeout:
			return s.turnTimeout(d)
		case SetupDone:
			return s.setupDone(c, d)
		case BusStopped:
			return s.busEnded(events.ReasonBusStopped)
		case BusRestarted:
			return s.busEnded(events.ReasonBusRestarted)
		}
	}
	return Decision{}, events.Errorf(events.CodeUnknownCommand, "%s with data %T is not decided here", c.Type, c.Data)
}
