package lifecycle

import (
	"slices"

	"keryx/events"
)

func (s *State) foldPolicyAsked(_ events.Record, d events.PolicyAsked) {
	if _, known := s.questions.byID[d.Question]; known || d.Question == "" {
		return
	}
	if s.questions.byID == nil {
		s.questions.byID = make(map[events.CommandID]*question)
	}
	s.questions.byID[d.Question] = &question{Asked: d}
	s.questions.open = append(s.questions.open, d.Question)
}

func (s *State) foldPolicyVoted(r events.Record, d events.PolicyVoted) {
	if q := s.questions.byID[d.Question]; q != nil && q.Answer == nil {
		q.Votes = append(q.Votes, d)
	}
	s.keepAnswer(r, events.Done{Sequence: r.Sequence})
}

// foldPolicyAnswered answers the command that asked.
func (s *State) foldPolicyAnswered(r events.Record, d events.PolicyAnswered) {
	q := s.questions.byID[d.Question]
	if q == nil || q.Answer != nil {
		return
	}
	q.Answer = &d
	s.questions.open = slices.DeleteFunc(s.questions.open, func(id events.CommandID) bool { return id == d.Question })
	s.questions.answered = append(s.questions.answered, d.Question)
	s.answers.set(d.Question, answer{at: r.Time, ordinal: r.Ordinal, value: s.questionView(*q)})
	if len(s.questions.answered) > MaxAnswered {
		delete(s.questions.byID, s.questions.answered[0])
		s.questions.answered = slices.Delete(s.questions.answered, 0, 1)
	}
}
