package execution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"keryx/events"
	"keryx/internal/privdir"
	"keryx/internal/process"
	"keryx/internal/targets"
)

const (
	// checkEvery is how often a target is looked at that has anything to be looked at, and
	// checkFailed how often one that cannot be used now.
	checkEvery  = 30 * time.Second
	checkFailed = 5 * time.Second
	// checkGrace is the time from TERM to KILL of a validate command that is out of time.
	checkGrace = time.Second
	// checkTail is how much is kept of what a validate command said last.
	checkTail = 4 << 10
)

// examiner finds out whether targets can be used.
type examiner struct {
	cfg    Config
	groups *process.Groups // nil where there are none
}

// examines reports whether there is anything about an offer that can change.
func (o *offer) examines() bool { return o.spec.Validate != nil || o.spec.RuntimeDir != "" }

// condition is what is found of an offer.
type condition struct {
	fault      *events.Error
	unenforced []string
}

func (c condition) with(broken *events.Error) events.TargetCondition {
	return events.TargetCondition{Fault: c.fault, ConfigFault: broken, LimitsUnenforced: c.unenforced}
}

func (x *examiner) condition(ctx context.Context, o *offer) condition {
	return condition{fault: faultOf(x.examine(ctx, o)), unenforced: x.unenforced(o.spec.Limits)}
}

func faultOf(err error) *events.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*events.Error](err); ok {
		return e
	}
	return events.Errorf(events.CodeValidateFailed, "%v", err)
}

// ready examines an offer right before it is used, and keeps what is found.
func (t *tenancy) ready(ctx context.Context, o *offer) error {
	if !o.examines() && o.spec.Limits == nil {
		return nil
	}
	c := t.look.condition(ctx, o)
	if ctx.Err() != nil {
		return errStopped
	}
	t.keep(o, c)
	if c.fault == nil {
		return nil
	}
	return c.fault
}

// keep remembers what was found of an offer that is still current.
func (t *tenancy) keep(o *offer, c condition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == o {
		t.found = c
		t.kick()
	}
}

// watch looks at what is offered from time to time, until ctx ends.
func (t *tenancy) watch(ctx context.Context) {
	for pause := checkEvery; sleep(ctx, pause) == nil; {
		t.mu.RLock()
		o, failed := t.current, t.found.fault != nil
		t.mu.RUnlock()
		pause = checkEvery
		if o == nil || !o.examines() {
			continue
		}
		c := t.look.condition(ctx, o)
		if ctx.Err() != nil {
			return
		}
		t.keep(o, c)
		if failed || c.fault != nil {
			pause = checkFailed
		}
	}
}

// reportCondition tells the bus of a condition that it does not know.
func (t *tenancy) reportCondition(ctx context.Context) error {
	t.mu.RLock()
	o, now, generation := t.current, t.found.with(t.broken), t.selected.Generation
	known := reflect.DeepEqual(now, t.told)
	t.mu.RUnlock()
	if o == nil || known {
		return nil
	}
	err := t.bus.Do(ctx, events.CmdTargetReport, events.ReportTarget{
		Name: t.name, Instance: t.bus.Instance(), Generation: generation, TargetCondition: now,
	}, nil)
	if err != nil {
		return err
	}
	if now.Fault != nil {
		t.logger.Warn("target cannot be used", "error", now.Fault)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == o {
		t.told = now
	}
	return nil
}

// examine returns why a target cannot be used, or nil.
func (x *examiner) examine(ctx context.Context, o *offer) error {
	if missing := x.unenforced(o.spec.Limits); len(missing) > 0 && !o.spec.Limits.BestEffort {
		return events.Errorf(events.CodeLimitsUnenforceable,
			"no controllers for the limits on %s here; delegate them, or declare the limits as best_effort", strings.Join(missing, ", "))
	}
	if o.spec.RuntimeDir != "" {
		if err := x.cfg.CheckDir(o.spec.RuntimeDir, o.account.owner()); err != nil {
			return err
		}
	}
	if o.spec.Validate == nil {
		return nil
	}
	return x.validate(ctx, o)
}

// unenforced returns the limits that cannot be enforced here.
func (x *examiner) unenforced(l *events.TargetLimits) (missing []string) {
	if l == nil {
		return nil
	}
	for _, c := range limitsOf(l).Controllers() {
		if !x.groups.Enforces(c) {
			missing = append(missing, c)
		}
	}
	return missing
}

// limits returns those of a command that can be enforced, or nil; the offer was examined.
func (x *examiner) limits(o *offer) *process.Limits {
	if o.spec.Limits == nil {
		return nil
	}
	l := limitsOf(o.spec.Limits)
	for _, c := range x.unenforced(o.spec.Limits) {
		switch c {
		case "cpu":
			l.CPUMilli = 0
		case "memory":
			l.MemoryBytes = 0
		case "pids":
			l.PIDs = 0
		}
	}
	if l == (process.Limits{}) {
		return nil
	}
	return &l
}

func limitsOf(l *events.TargetLimits) process.Limits {
	return process.Limits{CPUMilli: l.CPUMilli, MemoryBytes: l.MemoryBytes, PIDs: l.PIDs}
}

// validate runs the target's own check, as its commands run but without their prefix: only
// exit 0 passes.
func (x *examiner) validate(ctx context.Context, o *offer) error {
	v := o.spec.Validate
	took := time.Duration(v.TimeoutMS) * time.Millisecond
	if took == 0 {
		took = targets.DefaultValidateMS * time.Millisecond
	}
	var said tail
	veil := newVeil(x.cfg.Secrets, false, func(_ process.Stream, b []byte) { said.write(b) })
	id, grace := events.NewID(), checkGrace
	env := x.environment(o)
	env["KERYX_CHECK"] = id
	p, err := process.Start(ctx, process.Spec{
		Argv: v.Command, Dir: o.spec.Cwd, Env: entries(env), User: o.account.switches(), Limits: x.limits(o),
		Output:  veil.write,
		Timeout: took, Grace: &grace, Mark: "KERYX_CHECK=" + id, Groups: x.groups, Group: "check." + id,
	})
	if err != nil {
		return events.Errorf(events.CodeValidateFailed, "validate did not start: %v", err)
	}
	end := p.Wait()
	veil.end()
	if end.Code == 0 && !end.TimedOut && !end.Stopped {
		return nil
	}
	return events.Errorf(events.CodeValidateFailed, "validate %s%s", how(end, took), said.last())
}

func how(end process.Exit, limit time.Duration) string {
	switch {
	case end.TimedOut:
		return fmt.Sprintf("did not end within %v", limit)
	case end.Stopped:
		return "was stopped"
	case end.Signal != "":
		return "was ended by " + end.Signal
	}
	return fmt.Sprintf("exited %d", end.Code)
}

// environment is that of a command of the target for no session.
func (x *examiner) environment(o *offer) map[string]string {
	env := pick(x.cfg.Environ)
	o.account.environ(env)
	runtimeDir(env, o.spec.RuntimeDir)
	change(env, o.spec.EnvUnset, o.spec.EnvSet)
	authorize(env, o.spec)
	return env
}

// tail keeps the end of what was written.
type tail struct{ b []byte }

func (t *tail) write(b []byte) {
	t.b = append(t.b, b...)
	if len(t.b) > checkTail {
		t.b = t.b[len(t.b)-checkTail:]
	}
}

// last returns the last line that says anything, to follow other words.
func (t *tail) last() string {
	lines := bytes.Split(bytes.TrimSpace(t.b), []byte("\n"))
	line := strings.ToValidUTF8(strings.TrimSpace(string(lines[len(lines)-1])), "\uFFFD")
	if line == "" {
		return ", saying nothing"
	}
	return ": " + line
}

// owner is whose the directories of a target are.
func (a *account) owner() privdir.Owner {
	if a == nil {
		return privdir.Self()
	}
	return privdir.Owner{UID: a.UID, GID: a.GID}
}
