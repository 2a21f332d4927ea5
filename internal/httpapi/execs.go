package httpapi

import (
	"encoding/json"
	"time"

	"keryx/events"
)

func execRoutes() []route {
	start := post("/v1/sessions/{session}/execs", "startExec", events.CmdExecStart,
		"Run a command for a session, in a target that was selected or, by its name, as it is now")
	start.serve = (*call).startExec
	start.extra = map[string]schema{"target": {"$ref": "keryx.cmd.target.select.v1.json#/properties/name"}}
	start.optional = []string{"selection"}
	output := get("/v1/sessions/{session}/execs/{exec}/output", "execOutput", events.CmdExecOutput,
		"Read what an exec has written: a page, or, with Accept: text/event-stream, all that is kept and on to its end")
	output.serve, output.events, output.long = (*call).output, true, true
	output.answer = outputSchema()
	return []route{
		start,
		{
			method: "GET", path: "/v1/sessions/{session}/execs/{exec}", id: "showExec", roles: events.Roles(),
			words: "Show an exec as the session's record has it", answer: execSchema(), serve: (*call).showExec,
		},
		output,
		post("/v1/sessions/{session}/execs/{exec}/stop", "stopExec", events.CmdExecStop, "End an exec's process tree; its end is an event"),
	}
}

// startExec selects the target that is named, if no selection is given.
func (c *call) startExec() error {
	data, err := c.data()
	if err != nil {
		return err
	}
	name, ok := data["target"]
	if !ok {
		return c.send(data)
	}
	if _, twice := data["selection"]; twice {
		return invalid("/target", "the selection names the target already")
	}
	var target events.TargetName
	if err := json.Unmarshal(name, &target); err != nil {
		return invalid("/target", "a string is needed")
	}
	sel, err := c.conn.SelectTarget(c.ctx(), target)
	if err != nil {
		return err
	}
	delete(data, "target")
	if data["selection"], err = events.MarshalData(sel); err != nil {
		return err
	}
	return c.send(data)
}

// execView is an exec as the record has it.
type execView struct {
	Exec      events.ExecID        `json:"exec"`
	Session   events.SessionID     `json:"session"`
	State     string               `json:"state"` // requested, running, refused, exited, lost
	Requested events.ExecRequested `json:"requested"`
	At        time.Time            `json:"requested_at"`
	Started   *events.ExecStarted  `json:"started,omitempty"`
	Refused   *events.ExecRefused  `json:"refused,omitempty"`
	Exited    *events.ExecExited   `json:"exited,omitempty"`
	Lost      *events.ExecLost     `json:"lost,omitempty"`
	EndedAt   time.Time            `json:"ended_at,omitzero"`
}

func execSchema() schema {
	data := func(t events.Type) schema { return schema{"$ref": string(t) + ".json"} }
	return schema{
		"type": "object", "required": []string{"exec", "session", "state", "requested", "requested_at"},
		"properties": map[string]any{
			"exec": schema{"type": "string"}, "session": schema{"type": "string"},
			"state":        schema{"enum": []any{"requested", "running", "refused", "exited", "lost"}},
			"requested":    data(events.TypeExecRequested),
			"requested_at": schema{"type": "string", "format": "date-time"},
			"started":      data(events.TypeExecStarted), "refused": data(events.TypeExecRefused),
			"exited": data(events.TypeExecExited), "lost": data(events.TypeExecLost),
			"ended_at": schema{"type": "string", "format": "date-time"},
		},
	}
}

// showExec reads the session's record up to the exec's end.
func (c *call) showExec() error {
	if _, err := c.data(); err != nil {
		return err
	}
	v := execView{Exec: events.ExecID(c.r.PathValue("exec")), Session: events.SessionID(c.r.PathValue("session"))}
	if !events.IsULID(string(v.Session)) || !events.IsULID(string(v.Exec)) {
		return invalid("/exec", "session and exec are ULIDs")
	}
	for from := events.Sequence(0); ; {
		page, err := c.conn.Page(c.ctx(), v.Session.Scope(), from, 0)
		if err != nil {
			return err
		}
		for _, rec := range page.Records {
			if err := v.take(rec); err != nil {
				return err
			}
		}
		if from = page.Next; from == 0 || !v.EndedAt.IsZero() {
			break
		}
	}
	if v.State == "" {
		return events.Errorf(events.CodeUnknownExec, "session %s has no exec %s", v.Session, v.Exec)
	}
	return c.answerWith(v)
}

// take takes in a fact of the exec; those of others change nothing.
func (v *execView) take(rec events.Record) error {
	switch rec.Type {
	case events.TypeExecRequested:
		return fact(rec, func(d *events.ExecRequested) {
			if d.Exec == v.Exec {
				v.Requested, v.State, v.At = *d, "requested", rec.Time
			}
		})
	case events.TypeExecStarted:
		return fact(rec, func(d *events.ExecStarted) {
			if d.Exec == v.Exec {
				v.Started, v.State = d, "running"
			}
		})
	case events.TypeExecRefused:
		return fact(rec, func(d *events.ExecRefused) {
			if d.Exec == v.Exec {
				v.Refused, v.State, v.EndedAt = d, "refused", rec.Time
			}
		})
	case events.TypeExecExited:
		return fact(rec, func(d *events.ExecExited) {
			if d.Exec == v.Exec {
				v.Exited, v.State, v.EndedAt = d, "exited", rec.Time
			}
		})
	case events.TypeExecLost:
		return fact(rec, func(d *events.ExecLost) {
			if d.Exec == v.Exec {
				v.Lost, v.State, v.EndedAt = d, "lost", rec.Time
			}
		})
	}
	return nil
}

func fact[T any](rec events.Record, take func(*T)) error {
	d, err := events.DataOf[T](rec)
	if err == nil {
		take(&d)
	}
	return err
}
