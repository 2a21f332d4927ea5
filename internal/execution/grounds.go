package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"keryx/events"
	"keryx/internal/process"
)

// openGroups opens the control groups of this instance, or none where there are none:
// then process trees are searched for.
func (s *service) openGroups() error {
	g, err := process.OpenGroups(owner(s.bus), string(s.bus.Instance()))
	if errors.Is(err, process.ErrNoGroups) {
		s.cfg.Logger.Info("no control groups: what is left of a command is searched for", "reason", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("open control groups: %w", err)
	}
	s.groups = g
	return nil
}

func (s *service) closeGroups() {
	if s.groups == nil {
		return
	}
	if err := s.groups.Close(); err != nil {
		s.cfg.Logger.Warn("close control groups", "error", err)
	}
}

// owner names an executor on this machine, the same after each restart. Another bus may
// have one of that name: what its dead instances left is then ended here, and reported to
// a bus that does not know it, while its own bus learns of the end by the lease.
func owner(bus Bus) string {
	p := bus.Principal()
	return fmt.Sprintf("%s.%s", p.Profile, p.Name)
}

// leafName names the group of a command, so that a later instance knows whose it was.
func leafName(o events.StartOrder) string { return string(o.Session) + "." + string(o.Request.Exec) }

// emptyFormer ends what dead instances of this executor left running and returns what it
// was.
func (s *service) emptyFormer() []events.ReportLost {
	if s.groups == nil {
		return nil
	}
	names, err := s.groups.EmptyFormer()
	if err != nil {
		s.cfg.Logger.Error("end what a former instance left", "error", err)
	}
	var lost []events.ReportLost
	for _, name := range names {
		session, exec, ok := strings.Cut(name, ".")
		if !ok || !events.IsULID(session) || !events.IsULID(exec) {
			continue // made by somebody else
		}
		lost = append(lost, events.ReportLost{
			Session: events.SessionID(session),
			Fact:    events.ExecLost{Exec: events.ExecID(exec), Reason: lostReason(err)},
		})
	}
	return lost
}

func lostReason(err error) string {
	if err != nil {
		return "its executor ended, and not all that it left could be ended"
	}
	return "its executor ended; what it left running was ended"
}

// reportLost tells the bus of execs of former instances. That it knows already is no
// fault: it ends them itself once their executor's lease is over.
func (s *service) reportLost(ctx context.Context, lost []events.ReportLost) {
	for _, l := range lost {
		s.cfg.Logger.Warn("exec of a former instance", "exec", l.Fact.Exec, "session", l.Session, "reason", l.Fact.Reason)
		s.report(ctx, events.CmdExecReportLost, l.Fact.Exec, l)
	}
}

// reap reaps orphans of commands until stop is called, which waits for the end of that.
func (s *service) reap(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := process.Reap(ctx); err != nil {
			s.cfg.Logger.Warn("orphans are not reaped", "error", err)
		}
	}()
	return func() { cancel(); <-ended }
}
