package doctor

import (
	"encoding/json"
	"fmt"
	"strings"

	"keryx/events"
	"keryx/internal/storefile"
)

// most is how many of a kind are named one by one.
const most = 10

func isProjection(stream string) bool { return stream == events.StreamSnap }

func (r *Report) log() storefile.Report {
	for _, s := range r.Streams {
		if s.Stream == events.StreamLog {
			return s
		}
	}
	return storefile.Report{Stream: events.StreamLog}
}

// content reads what the log says: events that cannot be decoded, and names of sessions
// that have no record.
func (r *Report) content() error {
	if !r.log().Exists {
		return nil
	}
	var c content
	c.scopes = make(map[string]bool)
	if err := storefile.Walk(r.Dir, events.StreamLog, c.take); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	r.undecodable(c.bad)
	r.dangling(c.dangling())
	return nil
}

// content is what a walk over the log has seen.
type content struct {
	scopes map[string]bool // profile and session
	names  []name
	bad    []string
}

type name struct {
	scope, text string
	sequence    events.Sequence
}

func (c *content) take(m storefile.Message) error {
	if strings.HasPrefix(m.Subject, "kx.id.") {
		c.takeName(m)
		return nil
	}
	profile, scope, err := events.ParseLogSubject(m.Subject)
	if err == nil {
		c.scopes[string(profile)+"/"+string(scope)] = true
		for k := range m.Header {
			if strings.HasPrefix(k, "Nats-") {
				delete(m.Header, k)
			}
		}
		_, err = events.DecodeRecord(m.Subject, m.Sequence, m.Header, m.Data)
	}
	if err != nil {
		c.bad = append(c.bad, fmt.Sprintf("sequence %s on %s: %v", m.Sequence, m.Subject, err))
	}
	return nil
}

func (c *content) takeName(m storefile.Message) {
	var rec events.NameRecord
	parts := strings.Split(m.Subject, ".")
	if err := json.Unmarshal(m.Data, &rec); err != nil || len(parts) < 3 {
		c.bad = append(c.bad, fmt.Sprintf("name at sequence %s: %v", m.Sequence, err))
		return
	}
	c.names = append(c.names, name{scope: parts[2] + "/" + string(rec.Session), text: m.Subject, sequence: m.Sequence})
}

func (c *content) dangling() []string {
	var out []string
	for _, n := range c.names {
		if !c.scopes[n.scope] {
			out = append(out, fmt.Sprintf("%s at sequence %s, of session %s", n.text, n.sequence, n.scope))
		}
	}
	return out
}

func (r *Report) undecodable(bad []string) {
	if len(bad) == 0 {
		r.add(Finding{Check: "events", Severity: Fine, What: "every event can be decoded"})
		return
	}
	r.add(Finding{
		Check: "events", Severity: Warning, What: fmt.Sprintf("%d events cannot be decoded: %s", len(bad), some(bad)),
		Do: "nothing here: they are shown as holes and passed; a newer bus may read them",
	})
}

func (r *Report) dangling(names []string) {
	if len(names) == 0 {
		r.add(Finding{Check: "names", Severity: Fine, What: "every name belongs to a session with a record"})
		return
	}
	r.add(Finding{
		Check: "names", Severity: Warning, What: fmt.Sprintf("%d names belong to sessions without a record: %s", len(names), some(names)),
		Do: "restore a backup if the sessions are missed; the names stay taken",
	})
}

func some(all []string) string {
	if len(all) > most {
		return strings.Join(all[:most], "; ") + fmt.Sprintf("; and %d more", len(all)-most)
	}
	return strings.Join(all, "; ")
}
