// Package lifecycle decides what happens to a session. It is pure: no input or
// output, no clock, no goroutine, no randomness of its own.
//
// # Model
//
// A session's [State] is the fold of its log: [Fold] applies one event. [Decide] says
// what a command comes to in a state: events to append, an answer, or an error that
// changes nothing. [Owed] says what the state itself asks for by now. The caller
// appends, folds what it appended, and asks again; nothing else changes a State.
//
// One decision is one event wherever possible. What needs several is a chain: the
// decision says Again, and the same command is decided once more after the fold. Only
// a reset, and events that give names, are batches.
//
// An epoch begins with session.registered or session.reset and ends with
// session.finalized. The first event of every epoch after the first carries all that
// outlives an epoch, so that a fold may begin there.
//
// An event's epoch is the one that was open, or had ended last, when it was appended:
// what comes late, like a lost turn's report, belongs to the epoch it arrives in.
//
// # Answers
//
// The answer of a command is a function of the event that concludes it. The fold keeps
// it, so a repeated command gets the first answer, also after a restart. It keeps the
// last [MaxAnswers] of the last [AnswerLife]; what is older is refused as too_old.
// Commands that appended nothing are not remembered; they are decided anew. A question
// before a tool runs is answered by a later event, its verdict ([Decision.Wait]).
//
// # Owed
//
// One session.idle per ended turn, before anything else happens; the end of items that
// expired or do not fit any more, of approvals and questions whose time is over, and of
// execs whose approval ended unused; the release of items that are due; an offer of the
// next items, or of a steer; the end of an offer nobody answered; the end of an epoch by
// idleness or because its host is gone. What a command finds overdue of the first kinds,
// or an idle expiry, is appended before it is decided.
//
// # Guaranteed
//
// One finalized per epoch and nothing of the epoch's life after it; one turn at a time;
// epochs rise by one; a turn, an exec and an item end once; a refusal changes nothing;
// the fold is total and the same everywhere.
//
// # Not guaranteed
//
// That Fold makes sense of a log which Decide did not write. That an interrupt whose
// answer was lost is remembered: sent again without naming its turn, it hits another.
//
// # Kill points
//
// Between an append and what it owes: Owed still says it. Between two events of a
// chain: the command is repeated by its sender, or its cause is seen again, and the
// chain goes on where it was; no event between counts as the command's answer. Between
// an append and the message about it: [Resume] says it again. Between an approval's grant
// and its use: [Granted] says that it is to be used.
package lifecycle
