package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"keryx/events"
)

// Standing is where something stands.
type Standing struct {
	// State is one word.
	State string `json:"state"`
	// WaitsFor is what has to happen next; empty when nothing has to.
	WaitsFor string `json:"waits_for,omitempty"`
	// Unblock says what somebody can do about it.
	Unblock []string `json:"unblock,omitempty"`
}

// Session says where a session stands.
func Session(v events.SessionView) Standing {
	s := Standing{State: string(v.Status), WaitsFor: v.WaitingFor}
	to := string(v.Session)
	switch {
	case v.Status == events.StatusFinalized:
		s.Unblock = []string{"a message opens the next epoch: bus submit " + to + " TEXT"}
	case v.Running != nil:
		s.Unblock = []string{
			fmt.Sprintf("%s ends turn %s; bus turn %s shows it", v.Running.Host, v.Running.Turn, v.Running.Turn),
			"a message that interrupts it: bus submit " + to + " --mode interrupt TEXT",
		}
	case v.Pending > 0 && v.Host == "":
		s.Unblock = []string{host(v)}
	}
	for _, i := range v.Queue {
		s.Unblock = append(s.Unblock, item(i)...)
	}
	if s.Unblock = slices.Compact(s.Unblock); s.WaitsFor == "" && v.Running == nil && v.Status != events.StatusFinalized {
		s.WaitsFor = "nothing: the next message"
	}
	return s
}

func host(v events.SessionView) string {
	if len(v.WantedHosts) == 0 {
		return "a host attaches: the profile has no default hosts, and the session names none"
	}
	names := make([]string, len(v.WantedHosts))
	for i, h := range v.WantedHosts {
		names[i] = string(h)
	}
	return "a host attaches: start " + strings.Join(names, " or ")
}

// item says what moves on a message that is kept back.
func item(i events.ItemView) []string {
	id := string(i.Receipt)
	switch {
	case i.State == events.StateUnresolved:
		return []string{"bus requeue " + id + " if it did not run, else bus discard " + id}
	case i.Reason != "" && i.State == events.StateQueued:
		return []string{"a message of a user, or bus requeue " + id + ": it is held, " + i.Reason}
	case !i.NotBefore.IsZero():
		return []string{"the time passes until " + i.NotBefore.UTC().Format(time.RFC3339)}
	}
	return nil
}

// Receipt says where a message stands.
func Receipt(r events.Receipt, v events.SessionView) Standing {
	s := Standing{State: string(r.State)}
	at := slices.IndexFunc(v.Queue, func(i events.ItemView) bool { return i.Receipt == r.ID })
	switch {
	case r.State == events.StateAccepted:
		s.WaitsFor = "turn " + string(r.Turn) + " to end"
		s.Unblock = Session(v).Unblock
	case at < 0:
	case r.State == events.StateQueued && at > 0:
		s.WaitsFor = fmt.Sprintf("%d before it in the queue, and %s", at, v.WaitingFor)
		s.Unblock = append(Session(v).Unblock, "bus cancel "+string(r.ID)+" takes it back")
	default:
		s.WaitsFor = v.WaitingFor
		s.Unblock = append(Session(v).Unblock, "bus cancel "+string(r.ID)+" takes it back")
	}
	if r.State == events.StateUnresolved {
		s.WaitsFor, s.Unblock = "somebody to say whether it ran", item(events.ItemView{Receipt: r.ID, State: r.State})
	}
	return s
}

// Turn says where a turn stands.
func Turn(t events.TurnView) Standing {
	if t.State != events.TurnRunning {
		return Standing{State: string(t.State) + ", " + string(t.Outcome)}
	}
	return Standing{
		State: string(t.State), WaitsFor: string(t.Host) + " to end it",
		Unblock: []string{"a message that interrupts it: bus submit " + string(t.Session) + " --mode interrupt TEXT"},
	}
}

// Exec says where an exec stands.
func Exec(id events.ExecID, v events.SessionView) Standing {
	for _, e := range v.Execs {
		switch {
		case e.Exec != id:
		case !e.Started:
			return Standing{
				State: "requested", WaitsFor: fmt.Sprintf("%s to start it in %s", e.Executor, e.Target),
				Unblock: []string{"the executor " + string(e.Executor) + " is there and holds " + string(e.Target) + ": bus targets, bus leases"},
			}
		default:
			return Standing{
				State: "running", WaitsFor: fmt.Sprintf("process %d to end", e.PID),
				Unblock: []string{"bus kill " + string(v.Session) + " " + string(id)},
			}
		}
	}
	return Standing{State: "ended"}
}
