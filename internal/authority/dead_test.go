package authority_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

// bad sends a submit that breaks its schema.
func bad(t testing.TB, c *client.Conn, text string) {
	t.Helper()
	refused(t, c, events.CmdContinuationSubmit, json.RawMessage(`{"to":"k:1","text":"`+text+`"}`), events.CodeInvalid)
}

// letters are those of a principal, once n of them are there.
func letters(t testing.TB, b *bus, op *client.Conn, p events.PrincipalName, n int) []events.DeadLetter {
	t.Helper()
	var page events.DeadLetters
	b.await(fmt.Sprintf("%d dead letters", n), func() bool {
		var err error
		if page, err = op.DeadLetters(t.Context(), events.DeadList{Principal: p}); err != nil {
			t.Fatal(err)
		}
		return len(page.Letters) >= n
	})
	return page.Letters
}

func TestRefusedInputIsKeptWithItsReasonAndOnlyOperatorsOfTheProfileReadIt(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, op := b.connect("gw", events.RoleGateway), b.connect("op", events.RoleOperator)
	bad(t, gw, "one")
	bad(t, b.connect("other", events.RoleGateway), "two")
	l := letters(t, b, op, "gw", 1)[0]
	if l.Principal != "gw" || l.Command != events.CmdContinuationSubmit || l.Code != events.CodeInvalid || l.Message == "" || l.Input != nil {
		t.Errorf("the list has %+v", l)
	}
	whole, err := op.DeadLetter(t.Context(), l.Sequence)
	if err != nil || string(whole.Input) != `{"to":"k:1","text":"one"}` || whole.Bytes != len(whole.Input) {
		t.Errorf("the letter is %+v, %v", whole, err)
	}
	refused(t, gw, events.CmdDeadList, events.DeadList{}, events.CodeForbidden)
	elsewhere, err := b.node.Connect(t.Context(), events.Principal{Profile: "other", Name: "op", Role: events.RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := elsewhere.Close(); err != nil {
			t.Error(err)
		}
	}()
	refused(t, elsewhere, events.CmdDeadShow, events.DeadShow{Sequence: l.Sequence}, events.CodeUnknownLetter)
	if n, err := elsewhere.DropDead(t.Context(), l.Sequence); n != 0 || err != nil {
		t.Errorf("another profile's operator dropped %d, %v", n, err)
	}
	if n, err := op.DropDead(t.Context(), l.Sequence, l.Sequence+1000); n != 1 || err != nil {
		t.Errorf("dropped %d, %v; want 1", n, err)
	}
	refused(t, op, events.CmdDeadShow, events.DeadShow{Sequence: l.Sequence}, events.CodeUnknownLetter)
}

// TestAFloodOfBadInputIsKeptInPart: 20 at once and one a second then.
func TestAFloodOfBadInputIsKeptInPart(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, op := b.connect("gw", events.RoleGateway), b.connect("op", events.RoleOperator)
	begun := time.Now()
	for i := range 200 {
		bad(t, gw, fmt.Sprint(i))
	}
	got := len(letters(t, b, op, "gw", 20))
	if most := 21 + int(time.Since(begun).Seconds()); got > most {
		t.Errorf("%d letters were kept in %v, want %d at most", got, time.Since(begun), most)
	}
}

// TestAThousandLettersOfAPrincipalAreKept: the oldest go, and nobody else's.
func TestAThousandLettersOfAPrincipalAreKept(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	op := b.connect("op", events.RoleOperator)
	nc := bustest.System(t, b.node.Broker())
	one := func(p events.PrincipalName, i int) {
		m := nats.NewMsg(events.DeadSubject(profile, p))
		m.Header.Set("Keryx-Dead-Subject", "kx.cmd.default."+string(p)+".session.register")
		m.Data = fmt.Append(nil, i)
		if _, err := nc.RequestMsg(m, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	one("quiet", 0)
	const over = 10
	for i := range broker.DeadPerPrincipal + over {
		one("gw", i)
	}
	got := letters(t, b, op, "gw", broker.DeadPerPrincipal)
	if len(got) != broker.DeadPerPrincipal {
		t.Errorf("%d letters are kept, want %d", len(got), broker.DeadPerPrincipal)
	}
	first, err := op.DeadLetter(t.Context(), got[0].Sequence)
	if err != nil || string(first.Input) != fmt.Sprint(over) {
		t.Errorf("the oldest kept is %q, %v; want %d", first.Input, err, over)
	}
	letters(t, b, op, "quiet", 1)
	config, err := op.DeadLetters(t.Context(), events.DeadList{Limit: 7})
	if err != nil || len(config.Letters) != 7 || !config.More {
		t.Errorf("a page of 7 has %d, more %v, %v", len(config.Letters), config.More, err)
	}
}

// TestALetterCarriesNoOrdersToTheServer: headers of refused input that the server acts on
// would keep the letter out of the stream.
func TestALetterCarriesNoOrdersToTheServer(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	gw, op := b.connect("gw", events.RoleGateway), b.connect("op", events.RoleOperator)
	subject, h, _ := command(t, gw, events.CmdContinuationSubmit, events.Submit{To: "k:1", Body: events.Body{Text: "x"}})
	for name, value := range map[string]string{
		"Nats-Expected-Last-Sequence": "99", "Nats-Rollup": "all", "Nats-TTL": "1s", "Nats-Expected-Stream": "KX_LOG",
	} {
		h[name] = []string{value}
	}
	reply, sub := inbox(t, gw)
	raw(t, gw, subject, reply, h, []byte(`{"to":7}`))
	if e := refusal(t, sub); e.Code != events.CodeInvalid {
		t.Errorf("refused with %v", e)
	}
	letters(t, b, op, "gw", 1)
}
