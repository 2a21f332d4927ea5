package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/bustest"
)

// TestCase_H5 covers the broker's part: what is over the authority's limit still reaches
// the authority, which refuses it with a typed error; what is over the server's own
// limit fails at the sender; and neither harms the connection.
func TestCase_H5_OversizeMessagesDoNotBreakTheConnection(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	lost := make(chan error, 1)
	nc := bustest.Connect(t, b, bustest.Principal(t, b, "main", "p", events.RoleHost), url(b),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { lost <- err }))
	system := bustest.System(t, b)
	sub, err := system.SubscribeSync("kx.cmd.main.p.*.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := system.Flush(); err != nil {
		t.Fatal(err)
	}
	const subject = "kx.cmd.main.p.session.list"
	headers := nats.Header{"Filler": {strings.Repeat("x", 40<<10)}}
	for name, m := range map[string]*nats.Msg{
		"one byte over 1 MiB":    {Subject: subject, Data: make([]byte, events.MaxData+1)},
		"headers push it over":   {Subject: subject, Data: make([]byte, events.MaxData), Header: headers},
		"all the server takes":   {Subject: subject, Data: make([]byte, events.MaxPayload)},
		"a small one among them": {Subject: subject, Data: make([]byte, 10)},
	} {
		if err := errors.Join(nc.PublishMsg(m), nc.Flush()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := sub.NextMsg(5 * time.Second)
		if err != nil || len(got.Data) != len(m.Data) {
			t.Errorf("%s: did not arrive whole: %v", name, err)
		}
	}
	began := time.Now()
	if err := nc.Publish(subject, make([]byte, events.MaxPayload+1)); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("over the server's limit: %v, want ErrMaxPayload", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the sender learnt it after %v", took)
	}
	if err := errors.Join(nc.Publish(subject, make([]byte, 10)), nc.Flush()); err != nil {
		t.Fatalf("the same connection afterwards: %v", err)
	}
	if got, err := sub.NextMsg(5 * time.Second); err != nil || len(got.Data) != 10 {
		t.Errorf("a small message afterwards: %v", err)
	}
	if len(lost) != 0 {
		t.Errorf("the connection was lost: %v", <-lost)
	}
}
