package setup

import (
	"keryx/events"
)

// Progress decides on an executor's word on how far a run has come. What would go back,
// or is the same, is no event.
func (s *State) Progress(by events.PrincipalName, c events.ReportProgress) (Outcome, error) {
	x, err := s.reported(c.Fact.Run, by)
	if err != nil {
		return Outcome{}, err
	}
	if !x.summary.State.Active() || x.instance != c.Instance {
		return Outcome{}, events.Errorf(events.CodeAlreadyEnded, "run %s is not run by instance %s", c.Fact.Run, c.Instance)
	}
	next := Advance(x.summary.Progress, c.Fact.Progress)
	if next == x.summary.Progress && c.Fact.Malformed <= x.summary.Malformed {
		return answered(events.Done{})
	}
	return happened(c.Fact.Run.Scope(), events.TypeSetupProgressed,
		events.SetupProgressed{Run: c.Fact.Run, Progress: next, Malformed: max(c.Fact.Malformed, x.summary.Malformed)}, events.Done{})
}

// Advance returns the progress after a step was told: it never goes back, and stays below
// the end, which only success is.
func Advance(now, told events.SetupProgress) events.SetupProgress {
	if told.Step < now.Step || told.Percent < now.Percent && told.Step == now.Step {
		told.Step, told.Percent = now.Step, max(now.Percent, told.Percent)
	}
	told.Total = max(told.Total, now.Total, told.Step)
	told.Percent = min(max(told.Percent, now.Percent), 99)
	if told.Message == "" {
		told.Message = now.Message
	}
	return told
}

func (s *State) reported(id events.RunID, by events.PrincipalName) (*run, error) {
	x, err := s.run(id)
	if err != nil {
		return nil, err
	}
	if x.executor != by {
		return nil, events.Errorf(events.CodeForbidden, "run %s was not given to %s", id, by)
	}
	return x, nil
}

// End decides on an executor's word that a run has ended. Its result is kept only if the
// run was not cancelled or given up before, which the answer says: also when the same
// word comes again.
func (s *State) End(by events.PrincipalName, c events.ReportSetupEnded) (Outcome, error) {
	x, err := s.reported(c.Run, by)
	if err != nil {
		return Outcome{}, err
	}
	succeeded := c.Code == "" && c.Path != "" && c.End != nil
	switch {
	case x.summary.State.Over():
		return answered(events.SetupVerdict{Keep: succeeded && x.summary.State == events.SetupStateSucceeded && x.summary.Path == c.Path})
	case x.summary.State == events.SetupStateCancelling:
		return happened(c.Run.Scope(), events.TypeSetupCancelled, events.SetupCancelled{Run: c.Run, End: c.End}, events.SetupVerdict{})
	case !x.summary.State.Active():
		return Outcome{}, events.Errorf(events.CodeWrongState, "run %s is %s", c.Run, x.summary.State)
	case succeeded && c.Instance == x.instance:
		return happened(c.Run.Scope(), events.TypeSetupSucceeded,
			events.SetupSucceeded{Run: c.Run, Path: c.Path, End: *c.End}, events.SetupVerdict{Keep: true})
	}
	fact := events.SetupFailed{Run: c.Run, Code: c.Code, Message: c.Message, End: c.End}
	if fact.Code == "" {
		fact.Code, fact.Message = events.CodeSetupFailed, "the executor reported neither a result nor a reason"
	}
	return happened(c.Run.Scope(), events.TypeSetupFailed, fact, events.SetupVerdict{})
}

// Lost returns what becomes of the runs for a target whose executor instance is gone for
// good, or no longer has it.
func (s *State) Lost(executor events.PrincipalName, instance events.Instance, target events.TargetName) []Outcome {
	var out []Outcome
	for _, id := range s.order {
		x := s.runs[id]
		if x.executor != executor || x.instance != instance || x.plan.Target != target || !x.summary.State.Active() {
			continue
		}
		if x.summary.State == events.SetupStateCancelling {
			out = append(out, Outcome{Scope: id.Scope(), Type: events.TypeSetupCancelled, Data: events.SetupCancelled{
				Run: id, Reason: "the executor went away while it stopped the setup",
			}})
			continue
		}
		out = append(out, Outcome{Scope: id.Scope(), Type: events.TypeSetupFailed, Data: events.SetupFailed{
			Run: id, Code: events.CodeUnavailable, Message: "the executor went away while the setup ran",
		}})
	}
	return out
}
