package gateway

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

// Bounds of what is kept of streamed replies.
const (
	maxStreamed = 4 << 20  // bytes of one reply that can be compared with its record
	maxEarly    = 64 << 10 // bytes that came before their turn was known to run
)

// pieces joins the parts of the running turn's reply. They are numbered; after a missing
// one the rest is left to the record, so that nothing is shown out of order.
type pieces struct {
	turn   events.TurnID
	next   uint64
	text   strings.Builder
	broken bool
	early  []*nats.Msg
	held   int // bytes in early
}

// begin starts a turn's reply and returns what came early of it.
func (p *pieces) begin(turn events.TurnID) string {
	early := p.early
	*p = pieces{turn: turn, next: 1}
	var out strings.Builder
	for _, m := range early {
		if turnOf(m) == turn {
			out.WriteString(p.add(m))
		}
	}
	return out.String()
}

// add returns what a part adds to the reply: nothing when it is of another turn, comes
// twice or after a missing one.
func (p *pieces) add(m *nats.Msg) string {
	if turnOf(m) != p.turn {
		p.hold(m)
		return ""
	}
	n, err := strconv.ParseUint(m.Header.Get(events.HeaderPart), 10, 64)
	if err != nil || n > p.next || p.text.Len()+len(m.Data) > maxStreamed {
		p.broken = true
	}
	if p.broken || n < p.next {
		return ""
	}
	p.next++
	p.text.Write(m.Data)
	return string(m.Data)
}

// hold keeps a part whose turn may start next.
func (p *pieces) hold(m *nats.Msg) {
	if p.turn != "" || p.held+len(m.Data) > maxEarly {
		return
	}
	p.early, p.held = append(p.early, m), p.held+len(m.Data)
}

// end returns what of the reply was not streamed; whole when it has to be shown from
// its beginning because the streamed part does not fit it.
func (p *pieces) end(turn events.TurnID, reply string, truncated bool) (rest string, whole bool) {
	shown, complete := "", false
	if p.turn == turn {
		shown, complete = p.text.String(), !p.broken
		*p = pieces{}
	}
	switch {
	case strings.HasPrefix(reply, shown):
		return reply[len(shown):], false
	case truncated && complete && len(shown) > len(reply):
		return "", false // more was streamed than the record holds
	case strings.HasPrefix(shown, reply):
		return "", false
	}
	return reply, true
}

func turnOf(m *nats.Msg) events.TurnID {
	return events.TurnID(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
}
