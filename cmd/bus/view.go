package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"keryx/events"
	"keryx/internal/termtext"
)

// sheet prints a name and a value a line.
type sheet struct {
	b   strings.Builder
	now time.Time
}

func (s *sheet) row(name, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		fmt.Fprintf(&s.b, "%-12s %s\n", name, termtext.Visible(text))
	}
}

// printView prints a session's state at a time for a person.
func printView(w io.Writer, v events.SessionView, now time.Time) error {
	s := &sheet{now: now}
	s.row("session", "%s", v.Session)
	s.row("status", "%s", v.Status)
	s.row("waits for", "%s", why(v, s.now))
	s.row("epoch", "%s", v.Epoch)
	s.row("ended", "%s", v.Reason)
	s.row("created", "%s", v.CreatedAt.Local().Format(timeLayout))
	s.row("last event", "%s, ordinal %s, sequence %s", v.LastAt.Local().Format(timeLayout), v.LastOrd, v.LastSeq)
	s.row("turns", "%d", v.Turns)
	s.names(v)
	s.host(v)
	s.policy(v.Policy)
	s.work(v)
	return s.print(w)
}

func (s *sheet) print(w io.Writer) error {
	if _, err := io.WriteString(w, s.b.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// why says what the session waits for, and what is known of the reason.
func why(v events.SessionView, now time.Time) string {
	switch {
	case v.WaitingFor == "":
		return ""
	case v.Host == "" && len(v.WantedHosts) > 0:
		return fmt.Sprintf("%s: it wants %s, and none is connected or willing", v.WaitingFor, joined(v.WantedHosts, " or "))
	case v.Host == "":
		return v.WaitingFor + ": it wants the profile's default hosts, and there is none"
	case v.Running != nil:
		return fmt.Sprintf("%s: %s runs it since %s", v.WaitingFor, v.Running.Host, since(v.Running.StartedAt, now))
	}
	return v.WaitingFor
}

func since(t, now time.Time) string {
	return fmt.Sprintf("%s (%s)", t.Local().Format(timeLayout), now.Sub(t).Round(time.Second))
}

func joined[S ~string](list []S, sep string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, sep)
}

func (s *sheet) names(v events.SessionView) {
	for _, n := range v.AllNames {
		note := ""
		if !n.Current {
			note = ", leads to epoch " + n.Epoch.String() + " only"
		}
		s.row("name", "%s %q by %s%s", n.Kind, n.Value, n.Owner, note)
	}
	for _, a := range v.Lineage {
		s.row("lineage", "%q since epoch %s %s", a.StoredSessionID, a.Epoch, a.Reason)
	}
	s.row("home", "%s", v.Names.Home)
	s.row("source", "%s", v.Names.Source)
	s.row("surface", "%s", v.Names.Surface)
}

func (s *sheet) host(v events.SessionView) {
	if h := v.Attached; h != nil {
		s.row("host", "%s, instance %s, fence %s, lease %s", h.Host, h.Instance, h.Fence,
			time.Duration(h.LeaseTTLMS)*time.Millisecond)
	}
}

func (s *sheet) policy(p events.Policy) {
	s.row("hosts", "%s", joined(p.Hosts, ", "))
	s.row("target", "%s", p.Target)
	s.row("lifetime", "%s", p.Lifetime)
	for _, d := range []struct {
		name string
		ms   int64
	}{{"idle limit", p.IdleTTLMS}, {"host gone", p.HostGoneMS}} {
		if d.ms > 0 {
			s.row(d.name, "%s", time.Duration(d.ms)*time.Millisecond)
		}
	}
}

func (s *sheet) work(v events.SessionView) {
	if t := v.Running; t != nil {
		s.row("turn", "%s by %s since %s", t.Turn, t.Host, since(t.StartedAt, s.now))
	}
	for _, i := range v.Queue {
		s.row("message", "%s %s from %s: %q", i.State, i.Kind, i.Sender, termtext.Cut(i.Text, 200))
	}
	for _, e := range v.Execs {
		s.row("exec", "%s in %s by %s, started %v: %q", e.Exec, e.Target, e.Executor, e.Started, e.Argv)
	}
}
