package lifecycle

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"keryx/events"
	"keryx/internal/approvals"
	"keryx/internal/idle"
)

// FoldVersion is raised when a fold of the same events comes to another state, or the
// form of a snapshot changes: older snapshots are of no use then.
const FoldVersion = 3

// snapshot is a state in a form that can be kept. Every field of [State] has its place
// here; a test holds them together.
type snapshot struct {
	Position  Position             `json:"position"`
	Identity  Identity             `json:"identity"`
	Epoch     events.Epoch         `json:"epoch"`
	Finalized bool                 `json:"finalized,omitempty"`
	Begun     Begun                `json:"begun,omitzero"`
	Removed   bool                 `json:"removed,omitempty"`
	Reason    string               `json:"reason,omitempty"`
	Started   bool                 `json:"started,omitempty"`
	Host      *events.AttachedHost `json:"host,omitempty"`
	Fence     events.Fence         `json:"fence,omitzero"`
	Turns     int                  `json:"turns,omitempty"`
	Queue     idle.Queue           `json:"queue"`

	Running  events.TurnID        `json:"running,omitempty"`
	Known    []TurnEntry          `json:"known,omitempty"` // by id
	Ended    []events.TurnID      `json:"ended,omitempty"`
	Whole    bool                 `json:"whole,omitempty"`
	Execs    keptExecs            `json:"execs,omitzero"`
	Exits    []events.Item        `json:"exits,omitempty"`
	Answers  keptAnswers          `json:"answers,omitzero"`
	Clocks   keptClocks           `json:"clocks,omitzero"`
	LastHost *events.AttachedHost `json:"last_host,omitempty"`

	Approvals approvals.Book `json:"approvals,omitzero"`
	Questions keptQuestions  `json:"questions,omitzero"`

	Invocations invocations `json:"invocations,omitzero"`
}

type keptQuestions struct {
	Known    []question         `json:"known,omitempty"` // by id
	Open     []events.CommandID `json:"open,omitempty"`
	Answered []events.CommandID `json:"answered,omitempty"`
}

type keptExecs struct {
	Open    []Exec                            `json:"open,omitempty"`
	Ended   []keptEnd                         `json:"ended,omitempty"` // in order of their ends
	Whole   bool                              `json:"whole,omitempty"`
	Started map[events.ExecID]events.Sequence `json:"started,omitempty"`
}

type keptEnd struct {
	Exec     events.ExecID        `json:"exec"`
	Kind     events.Type          `json:"kind,omitempty"`
	Sequence events.Sequence      `json:"sequence,omitempty"`
	Executor events.PrincipalName `json:"executor,omitempty"`
	Instance events.Instance      `json:"instance,omitempty"`
}

type keptAnswers struct {
	Kept []events.CommandAnswer `json:"kept,omitempty"` // in their order
	From time.Time              `json:"from,omitzero"`
}

type keptClocks struct {
	Activity time.Time           `json:"activity,omitzero"`
	HostLost time.Time           `json:"host_lost,omitzero"`
	Idle     *events.SessionIdle `json:"idle,omitempty"`
	LastTurn events.TurnID       `json:"last_turn,omitempty"`
	Epoch    events.Sequence     `json:"epoch"`
	Moved    events.Sequence     `json:"moved,omitempty"`
}

// MarshalJSON implements json.Marshaler: the whole state, for a snapshot.
func (s *State) MarshalJSON() ([]byte, error) {
	return events.MarshalData(snapshot{
		Position: s.Position, Identity: s.Identity, Epoch: s.Epoch, Begun: s.Begun, Removed: s.Removed, Finalized: s.Finalized, Reason: s.Reason,
		Started: s.Started, Host: s.Host, Fence: s.Fence, Turns: s.Turns, Queue: s.Queue,
		Running: s.running, Known: s.keepTurns(), Ended: s.ended, Whole: s.whole, Execs: s.execs.keep(),
		Exits: s.exits, Answers: s.answers.keep(), LastHost: s.lastHost,
		Approvals: s.approvals, Questions: s.questions.keep(), Invocations: s.invocations,
		Clocks: keptClocks{s.clocks.activity, s.clocks.hostLost, s.clocks.idle, s.clocks.lastTurn, s.clocks.epoch, s.clocks.moved},
	})
}

// UnmarshalJSON implements json.Unmarshaler. What it reads is what a fold of the same
// events gives, in every field.
func (s *State) UnmarshalJSON(b []byte) error {
	var k snapshot
	if err := json.Unmarshal(b, &k); err != nil {
		return err
	}
	*s = State{
		Position: k.Position, Identity: k.Identity, Epoch: k.Epoch, Begun: k.Begun, Removed: k.Removed, Finalized: k.Finalized, Reason: k.Reason,
		Started: k.Started, Host: k.Host, Fence: k.Fence, Turns: k.Turns, Queue: k.Queue,
		running: k.Running, ended: k.Ended, whole: k.Whole, execs: k.Execs.execs(),
		exits: k.Exits, answers: k.Answers.answers(), lastHost: k.LastHost,
		approvals: k.Approvals, questions: k.Questions.questions(), invocations: k.Invocations,
		clocks: clocks{activity: k.Clocks.Activity, hostLost: k.Clocks.HostLost, idle: k.Clocks.Idle, lastTurn: k.Clocks.LastTurn, epoch: k.Clocks.Epoch, moved: k.Clocks.Moved},
	}
	for _, t := range k.Known {
		if s.turns == nil {
			s.turns = make(map[events.TurnID]TurnEntry, len(k.Known))
		}
		s.turns[t.Turn] = t
	}
	return nil
}

func (s *State) keepTurns() []TurnEntry {
	var out []TurnEntry
	for _, t := range s.turns {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b TurnEntry) int {
		if a.Turn < b.Turn {
			return -1
		}
		return 1
	})
	return out
}

func (x *execs) keep() keptExecs {
	k := keptExecs{Open: x.open, Whole: x.whole, Started: x.started}
	for _, id := range x.order {
		e := x.ended[id]
		k.Ended = append(k.Ended, keptEnd{id, e.kind, e.sequence, e.executor, e.instance})
	}
	return k
}

func (k keptExecs) execs() execs {
	x := execs{open: k.Open, whole: k.Whole, started: k.Started}
	for _, e := range k.Ended {
		if x.ended == nil {
			x.ended = make(map[events.ExecID]execEnd, len(k.Ended))
		}
		x.ended[e.Exec] = execEnd{e.Kind, e.Sequence, e.Executor, e.Instance}
		x.order = append(x.order, e.Exec)
	}
	return x
}

func (q *questions) keep() keptQuestions {
	k := keptQuestions{Open: q.open, Answered: q.answered}
	for _, id := range slices.Sorted(maps.Keys(q.byID)) {
		k.Known = append(k.Known, *q.byID[id])
	}
	return k
}

func (k keptQuestions) questions() questions {
	q := questions{open: k.Open, answered: k.Answered}
	for i := range k.Known {
		if q.byID == nil {
			q.byID = make(map[events.CommandID]*question, len(k.Known))
		}
		q.byID[k.Known[i].Asked.Question] = &k.Known[i]
	}
	return q
}

func (a *answers) keep() keptAnswers {
	k := keptAnswers{From: a.from}
	for _, id := range a.order {
		kept := a.byID[id]
		k.Kept = append(k.Kept, events.CommandAnswer{Command: id, At: kept.at, Ordinal: kept.ordinal, Answer: encode(kept.value)})
	}
	return k
}

func (k keptAnswers) answers() answers {
	a := answers{from: k.From}
	for _, c := range k.Kept {
		if a.byID == nil {
			a.byID = make(map[events.CommandID]answer, len(k.Kept))
		}
		a.byID[c.Command] = answer{at: c.At, ordinal: c.Ordinal, value: c.Answer}
		a.order = append(a.order, c.Command)
	}
	return a
}
