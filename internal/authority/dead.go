package authority

import (
	"context"
	"errors"
	"fmt"

	"keryx/events"
	"keryx/internal/sessionlog"
)

// deadLimit bounds a page of dead letters and what is dropped at once.
const deadLimit = 1000

// deadCommand answers an operator about dead letters. They are no part of the truth: what
// is done to them is on no record.
func (t *term) deadCommand(ctx context.Context, req *request) {
	dead, err := sessionlog.OpenStream(ctx, t.cfg.Conn, events.StreamDead)
	if err != nil {
		t.fail(req, err)
		return
	}
	switch d := req.data.(type) {
	case events.DeadList:
		t.reply(req)(deadList(ctx, dead, req.caller.Profile, d))
	case events.DeadShow:
		t.reply(req)(deadShow(ctx, dead, req.caller.Profile, d.Sequence))
	case events.DeadDrop:
		t.reply(req)(deadDrop(ctx, dead, req.caller.Profile, d.Sequences))
	}
}

func deadList(ctx context.Context, dead *sessionlog.Log, p events.Profile, q events.DeadList) (events.DeadLetters, error) {
	limit := q.Limit
	if limit <= 0 || limit > deadLimit {
		limit = deadLimit
	}
	subject := events.DeadAll(p)
	if q.Principal != "" {
		subject = events.DeadSubject(p, q.Principal)
	}
	page, next, err := dead.Page(ctx, subject, q.After+1, limit, pageBytes)
	if err != nil {
		return events.DeadLetters{}, err
	}
	out := events.DeadLetters{Letters: []events.DeadLetter{}, More: next != 0}
	for _, m := range page {
		l := letterOf(m)
		l.Input = nil
		out.Letters = append(out.Letters, l)
	}
	return out, nil
}

func deadShow(ctx context.Context, dead *sessionlog.Log, p events.Profile, seq events.Sequence) (events.DeadLetter, error) {
	if seq < 1 {
		return events.DeadLetter{}, noLetter(seq)
	}
	page, _, err := dead.Page(ctx, events.DeadAll(p), seq, 1, pageBytes)
	if err != nil {
		return events.DeadLetter{}, err
	}
	if len(page) == 0 || page[0].Sequence != seq {
		return events.DeadLetter{}, noLetter(seq)
	}
	return letterOf(page[0]), nil
}

func noLetter(seq events.Sequence) *events.Error {
	return events.Errorf(events.CodeUnknownLetter, "there is no dead letter %s", seq)
}

// deadDrop removes letters of the operator's own profile only.
func deadDrop(ctx context.Context, dead *sessionlog.Log, p events.Profile, seqs []events.Sequence) (events.DeadDropped, error) {
	var out events.DeadDropped
	if len(seqs) == 0 || len(seqs) > deadLimit {
		return out, &events.Error{Code: events.CodeInvalid, Path: "/sequences", Message: fmt.Sprintf("1 to %d letters are dropped at once", deadLimit)}
	}
	for _, seq := range seqs {
		_, err := deadShow(ctx, dead, p, seq)
		if errors.Is(err, events.ErrOf(events.CodeUnknownLetter)) {
			continue
		}
		if err == nil {
			err = dead.Delete(ctx, seq)
		}
		if err != nil {
			return out, err
		}
		out.Dropped++
	}
	return out, nil
}

func letterOf(m sessionlog.Stored) events.DeadLetter {
	l := events.DeadLetter{
		Sequence: m.Sequence, Time: m.Time, Code: events.Code(m.Header.Get(headerDeadCode)),
		Message: m.Header.Get(headerDeadReason), Path: m.Header.Get(headerDeadPath),
		Bytes: len(m.Data), Input: m.Data,
	}
	// The subject is of the bus's own making: it was parsed when the input came.
	_, name, noun, verb, err := events.ParseCmdSubject(m.Header.Get(headerDeadSubject))
	if err == nil {
		l.Principal, l.Command = name, commandType(noun, verb)
	}
	return l
}

// commandType is the type of a command that may not exist.
func commandType(noun, verb string) events.Type {
	if e, ok := events.FindCommand(noun, verb); ok {
		return e.Type
	}
	return events.Type(fmt.Sprintf("keryx.cmd.%s.%s.v1", noun, verb))
}
