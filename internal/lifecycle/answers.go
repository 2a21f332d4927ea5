package lifecycle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"keryx/events"
)

// answers remembers what commands were answered.
type answers struct {
	byID  map[events.CommandID]answer
	order []events.CommandID // by time of the concluding event
	from  time.Time          // set when answers older than this were dropped by number
}

// answer holds the answer as a value, because few are ever asked for again.
type answer struct {
	at      time.Time
	ordinal events.Ordinal
	value   any
}

func (a *answers) get(id events.CommandID) (events.Raw, bool) {
	kept, ok := a.byID[id]
	if !ok || id == "" {
		return nil, false
	}
	return encode(kept.value), true
}

// encode returns v as JSON. Answers are plain structs, for which that cannot fail.
func encode(v any) events.Raw {
	if raw, ok := v.(events.Raw); ok {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return events.Raw("{}")
	}
	return b
}

// set keeps an answer; a later event of the same command replaces it.
func (a *answers) set(id events.CommandID, kept answer) {
	if a.byID == nil {
		a.byID = make(map[events.CommandID]answer)
	}
	if _, ok := a.byID[id]; !ok {
		id = events.CommandID(strings.Clone(string(id))) // of a message's whole header, often
		a.order = append(a.order, id)
	}
	a.byID[id] = kept
	a.trim(kept.at)
}

func (a *answers) trim(now time.Time) {
	for len(a.order) > 0 {
		first := a.byID[a.order[0]]
		aged := now.Sub(first.at) > AnswerLife
		if len(a.order) <= MaxAnswers && !aged {
			return
		}
		if !aged {
			a.from = first.at
		}
		delete(a.byID, a.order[0])
		a.order = a.order[1:]
	}
}

// tooOld reports whether a command sent then may have been answered and forgotten.
func (a *answers) tooOld(sent, now time.Time) bool {
	if sent.IsZero() {
		return false
	}
	return now.Sub(sent) > AnswerLife || !sent.After(a.from)
}

// carry returns the newest answers that fit, oldest first, and since when they are all.
func (a *answers) carry(now time.Time) (out []events.CommandAnswer, from time.Time) {
	from, size := a.from, 0
	for _, id := range slices.Backward(a.order) {
		kept := a.byID[id]
		if now.Sub(kept.at) > AnswerLife {
			break
		}
		c := events.CommandAnswer{Command: id, At: kept.at, Ordinal: kept.ordinal, Answer: encode(kept.value)}
		if size += len(c.Answer) + len(id) + 100; size > carryAnswerBytes {
			from = kept.at
			break
		}
		out = append(out, c)
	}
	slices.Reverse(out)
	return out, from
}

// restore takes answers from a carry, unless richer ones are known.
func (a *answers) restore(carried []events.CommandAnswer, from time.Time) {
	for _, c := range carried {
		if _, ok := a.byID[c.Command]; !ok {
			a.set(c.Command, answer{at: c.At, ordinal: c.Ordinal, value: c.Answer})
		}
	}
	if len(a.order) == len(carried) && from.After(a.from) {
		a.from = from
	}
}

// keepAnswer keeps v as the answer of the command that caused r. What the authority
// does by itself answers nobody.
func (s *State) keepAnswer(r events.Record, v any) {
	if r.Causation == "" || strings.HasSuffix(r.Source, "/"+string(events.AuthorityName)) {
		return
	}
	s.answers.set(r.Causation, answer{at: r.Time, ordinal: r.Ordinal, value: v})
}
