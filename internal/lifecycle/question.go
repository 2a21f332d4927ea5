package lifecycle

import (
	"slices"
	"time"

	"keryx/events"
)

// Bounds of questions whether a tool may run.
const (
	// QuestionLife is how long an answer may take, unless the asker says otherwise.
	QuestionLife = 2 * time.Second
	// MaxQuestionLife is the most an asker may say.
	MaxQuestionLife = 30 * time.Second
	// MaxQuestions is how many questions of a session may be open at once.
	MaxQuestions = 16
	// MaxAnswered is how many answered questions of a session are remembered.
	MaxAnswered = 256
)

// question is what a host asked before a tool runs.
type question struct {
	Asked events.PolicyAsked
	Votes []events.PolicyVoted
	// Answer is nil while the question is open.
	Answer *events.PolicyAnswered
}

// questions are those of a session.
type questions struct {
	byID     map[events.CommandID]*question
	open     []events.CommandID // oldest first
	answered []events.CommandID // by time of the answer
}

func (q *questions) get(id events.CommandID) (question, bool) {
	if found := q.byID[id]; found != nil {
		return *found, true
	}
	return question{}, false
}

// ask records a host's question. The answer comes with the verdict.
func (s *State) ask(c Command, d events.AskPolicy) (Decision, error) {
	if q, ok := s.questions.get(c.ID); ok && q.Asked.Host == c.Caller.Name {
		return Decision{Wait: true}, nil
	}
	for _, err := range []error{s.checkOpen(), s.checkFence(c, d.Fence), s.checkTurn(d.Turn), checkTimeout(d.TimeoutMS)} {
		if err != nil {
			return Decision{}, err
		}
	}
	if len(s.questions.open) >= MaxQuestions {
		return Decision{}, events.Errorf(events.CodeQueueFull, "%d questions are open in session %s", MaxQuestions, s.Session)
	}
	draft := s.draft(events.TypePolicyAsked, events.PolicyAsked{
		Question: c.ID, Turn: d.Turn, Host: c.Caller.Name, Tool: d.Tool, Digest: d.Digest,
		Names: s.namesFor(d.Names), Judges: c.Judges, Default: s.toolDefault(c.Judges),
		ExpiresAt: c.Now.Add(or(millis(d.TimeoutMS), QuestionLife)).UTC(),
	})
	draft.Turn = d.Turn
	return Decision{Drafts: []Draft{draft}, Wait: true}, nil
}

func checkTimeout(ms int64) error {
	if ms >= 0 && millis(ms) <= MaxQuestionLife {
		return nil
	}
	e := events.Errorf(events.CodeInvalid, "an answer may take %s at most", MaxQuestionLife)
	e.Path = "/timeout_ms"
	return e
}

// namesFor fills in what a host left out of its session's names.
func (s *State) namesFor(given events.Names) events.Names {
	n := s.CurrentNames()
	n.GatewaySessionKey = or(given.GatewaySessionKey, n.GatewaySessionKey)
	n.StoredSessionID = or(given.StoredSessionID, n.StoredSessionID)
	n.RuntimeSessionID = or(given.RuntimeSessionID, n.RuntimeSessionID)
	n.SessionID = or(given.SessionID, n.SessionID)
	n.TaskID = or(given.TaskID, n.TaskID)
	n.Home, n.Source, n.Surface = or(given.Home, n.Home), or(given.Source, n.Source), or(given.Surface, n.Surface)
	return n
}

// toolDefault is the verdict when not everybody answers in time.
func (s *State) toolDefault(judges []events.Judge) events.Verdict {
	switch {
	case s.Policy.ToolDefault == events.ToolDefaultAllow:
		return events.VerdictAllow
	case s.Policy.ToolDefault == events.ToolDefaultDeny, len(judges) > 0:
		return events.VerdictDeny // who wanted to be asked could not say
	}
	return events.VerdictAllow
}

// vote records what one of those asked says, once.
func (s *State) vote(c Command, d events.VotePolicy) (Decision, error) {
	q, ok := s.questions.get(d.Question)
	if !ok || !slices.Contains(q.Asked.Judges, events.Judge{Principal: c.Caller.Name, Instance: d.Instance}) {
		return Decision{}, unknownQuestion(d.Question)
	}
	voted := slices.ContainsFunc(q.Votes, func(v events.PolicyVoted) bool {
		return v.By == c.Caller.Name && v.Instance == d.Instance
	})
	if voted || q.Answer != nil {
		return Decision{}, events.Errorf(events.CodeAlreadyAnswered, "question %s is answered", d.Question)
	}
	draft := s.draft(events.TypePolicyVoted, events.PolicyVoted{
		Question: d.Question, By: c.Caller.Name, Instance: d.Instance, Verdict: d.Verdict, Reason: d.Reason,
	})
	draft.Turn = q.Asked.Turn
	return one(draft)
}

func unknownQuestion(id events.CommandID) error {
	return events.Errorf(events.CodeUnknownQuestion, "question %s was not put to you", id)
}

// verdict is the answer of the first open question that has come to one.
func (s *State) verdict(now time.Time) (Draft, bool) {
	for _, id := range s.questions.open {
		if a, ok := decideQuestion(s.questions.byID[id], now); ok {
			return s.draftVerdict(*s.questions.byID[id], a), true
		}
	}
	return Draft{}, false
}

// decideQuestion says what a question has come to: a deny decides at once, an allow when
// all have allowed, the default when the time is over or nobody is there to ask.
func decideQuestion(q *question, now time.Time) (events.PolicyAnswered, bool) {
	a := events.PolicyAnswered{Question: q.Asked.Question}
	for _, v := range q.Votes {
		if v.Verdict == events.VerdictDeny {
			a.Verdict, a.By, a.Reason = v.Verdict, v.By, or(v.Reason, "denied by "+string(v.By))
			return a, true
		}
	}
	switch asked, silent := len(q.Asked.Judges), len(q.Asked.Judges)-len(q.Votes); {
	case asked == 0:
		a.Verdict, a.Defaulted, a.Reason = q.Asked.Default, true, "nobody is registered to be asked"
	case silent <= 0:
		a.Verdict, a.Reason = events.VerdictAllow, "all who were asked allow it"
	case !now.Before(q.Asked.ExpiresAt):
		a.Verdict, a.Defaulted, a.Reason = q.Asked.Default, true, "not all who were asked answered in time"
	default:
		return a, false
	}
	return a, true
}

func (s *State) draftVerdict(q question, a events.PolicyAnswered) Draft {
	d := s.draft(events.TypePolicyAnswered, a)
	d.Turn, d.Own = q.Asked.Turn, true
	return d
}

// nextVerdict is when the next open question gets its default.
func (s *State) nextVerdict() time.Time {
	var next time.Time
	for _, id := range s.questions.open {
		if at := s.questions.byID[id].Asked.ExpiresAt; next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// Question returns what is known of a question, also for some time after its answer.
func (s *State) Question(id events.CommandID) (events.QuestionView, bool) {
	q, ok := s.questions.get(id)
	return s.questionView(q), ok
}

func (s *State) questionView(q question) events.QuestionView {
	v := events.QuestionView{Question: q.Asked.Question, Session: s.Session, Tool: q.Asked.Tool}
	if a := q.Answer; a != nil {
		v.Verdict, v.Reason, v.By, v.Defaulted = a.Verdict, a.Reason, a.By, a.Defaulted
	}
	return v
}
