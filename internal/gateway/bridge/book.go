package bridge

import (
	"strconv"

	"keryx/events"
)

// saying is something that is to be said in a place because of an event.
type saying struct {
	id      string // stable
	place   events.Place
	text    string
	session events.SessionID
	at      events.Sequence // of the event; 0: none asked for it
}

// item is a message that waits in a session.
type item struct {
	session events.SessionID
	at      events.Sequence // of its queued event
	place   events.Place
	own     bool // it came from a place of this account
	user    bool // a person said it, somewhere
}

// book knows, from the events of a profile, what is to be said in places of one account.
// It is pure, and not safe for concurrent use.
type book struct {
	from  origins
	me    events.PrincipalName
	items map[events.ReceiptID]item
	lost  map[events.TurnID][]events.Place // of turns whose host may still report
}

func newBook(from origins, me events.PrincipalName) *book {
	return &book{from: from, me: me, items: make(map[events.ReceiptID]item), lost: make(map[events.TurnID][]events.Place)}
}

// told is what an event asks for. Home is true for a reply to nobody's message, which is
// said in the place of the session's own key, if that is one of the account.
type told struct {
	sayings []saying
	home    bool
}

// take folds an event of a session.
func (b *book) take(rec events.Record) (told, error) {
	switch rec.Type {
	case events.TypeContinuationQueued:
		d, err := events.DataOf[events.ContinuationQueued](rec)
		if err == nil {
			b.queued(rec, d.Item)
		}
		return told{}, err
	case events.TypeTurnEnded:
		d, err := events.DataOf[events.TurnEnded](rec)
		if err != nil {
			return told{}, err
		}
		return b.ended(rec, d), nil
	case events.TypeTurnReportedLate:
		d, err := events.DataOf[events.TurnReportedLate](rec)
		if err != nil {
			return told{}, err
		}
		places := b.lost[d.Turn]
		delete(b.lost, d.Turn)
		return told{sayings: sayings(rec, string(d.Turn)+"-late", replyText(d.Outcome, d.Reply, d.Error), places)}, nil
	case events.TypeSessionForgotten:
		return told{}, b.forgotten(rec)
	}
	return b.undelivered(rec)
}

func (b *book) queued(rec events.Record, it events.Item) {
	place, own := b.from.said(it.IdempotencyKey)
	b.items[it.Receipt] = item{
		session: rec.Scope.Session(), at: rec.Sequence, place: place,
		own: own && it.Sender == b.me, user: it.Kind == events.ItemUser,
	}
}

// forgotten drops what waits in a session that is gone.
func (b *book) forgotten(rec events.Record) error {
	d, err := events.DataOf[events.SessionForgotten](rec)
	for id, it := range b.items {
		if it.session == d.Session {
			delete(b.items, id)
		}
	}
	return err
}

// lostMost is how many lost turns are remembered.
const lostMost = 1024

func (b *book) ended(rec events.Record, d events.TurnEnded) told {
	var places []events.Place
	foreign := false
	for _, id := range d.Settled {
		it, known := b.items[id]
		delete(b.items, id)
		switch {
		case known && it.own:
			places = addPlace(places, it.place)
		case known && it.user:
			foreign = true
		}
	}
	if d.Outcome == events.OutcomeLost && len(places) > 0 && len(b.lost) < lostMost {
		b.lost[d.Turn] = places
	}
	text := replyText(d.Outcome, d.Reply, d.Error)
	if len(places) == 0 {
		if foreign || text == "" {
			return told{}
		}
		return told{home: true, sayings: sayings(rec, string(d.Turn), text, []events.Place{{}})}
	}
	return told{sayings: sayings(rec, string(d.Turn), text, places)}
}

func addPlace(places []events.Place, p events.Place) []events.Place {
	for _, known := range places {
		if known == p {
			return places
		}
	}
	return append(places, p)
}

// sayings says a text in places, with an id for each.
func sayings(rec events.Record, id, text string, places []events.Place) []saying {
	if text == "" {
		return nil
	}
	var out []saying
	for i, p := range places {
		s := saying{id: id, place: p, text: text, session: rec.Scope.Session(), at: rec.Sequence}
		if i > 0 {
			s.id += "-" + strconv.Itoa(i+1)
		}
		out = append(out, s)
	}
	return out
}

// replyText is what a person is told of a turn's end.
func replyText(o events.Outcome, reply, failure string) string {
	note := ""
	switch o {
	case events.OutcomeCompleted:
		return reply
	case events.OutcomeFailed:
		note = "[failed" + because(failure) + "]"
	case events.OutcomeAborted:
		note = "[stopped" + because(failure) + "]"
	case events.OutcomeLost:
		note = "[the agent is gone; what it did is not known" + because(failure) + "]"
	}
	if reply == "" {
		return note
	}
	return reply + "\n\n" + note
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// undelivered tells who said it that a message will not be answered.
func (b *book) undelivered(rec events.Record) (told, error) {
	var why string
	switch rec.Type {
	case events.TypeContinuationExpired:
		why = "nobody took it in time"
	case events.TypeContinuationInvalidated:
		why = "the session has changed"
	case events.TypeContinuationCancelled:
		why = "it was taken back"
	case events.TypeContinuationDiscarded:
		why = "it was discarded"
	default:
		return told{}, nil
	}
	d, err := events.DataOf[struct {
		Items []events.ReceiptID `json:"items"`
	}](rec)
	var out told
	for _, id := range d.Items {
		it, known := b.items[id]
		delete(b.items, id)
		if known && it.own {
			out.sayings = append(out.sayings, sayings(rec, string(id), "[your message was not answered: "+why+"]", []events.Place{it.place})...)
		}
	}
	return out, err
}

// oldest is where in the log the first message waits that is not answered; 0: none does.
func (b *book) oldest() (seq events.Sequence) {
	for _, it := range b.items {
		if seq == 0 || it.at < seq {
			seq = it.at
		}
	}
	return seq
}
