package broker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
	"keryx/internal/bustest"
)

// deputyHeaders are header sets that make a server answer, refuse, batch, schedule or
// trace: each could send something to the reply subject in the sender's stead.
func deputyHeaders() map[string]nats.Header {
	h := func(kv ...string) nats.Header {
		out := nats.Header{}
		for i := 0; i < len(kv); i += 2 {
			out.Set(kv[i], kv[i+1])
		}
		return out
	}
	return map[string]nats.Header{
		"none":                     nil,
		"expectation that fails":   h("Nats-Expected-Last-Subject-Sequence", "999"),
		"another stream expected":  h("Nats-Expected-Stream", "KX_LOG"),
		"message id":               h("Nats-Msg-Id", "1"),
		"time to live":             h("Nats-TTL", "1s"),
		"malformed time to live":   h("Nats-TTL", "x"),
		"rollup":                   h("Nats-Rollup", "all"),
		"atomic batch":             h("Nats-Batch-Id", "b", "Nats-Batch-Sequence", "1", "Nats-Batch-Commit", "1"),
		"atomic batch, malformed":  h("Nats-Batch-Id", "b", "Nats-Batch-Sequence", "x"),
		"counter":                  h("Nats-Incr", "1"),
		"schedule":                 h("Nats-Schedule", "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target", "kx.log.main.S"),
		"schedule purge":           h("Nats-Schedule-Next", "purge", "Nats-Scheduler", "kx.out.main.other.S.X"),
		"required API level":       h("Nats-Required-Api-Level", "99"),
		"trace to the log":         h("Nats-Trace-Dest", "kx.log.main.S"),
		"trace to another's inbox": h("Nats-Trace-Dest", "_INBOX_main_other.x", "Nats-Trace-Only", "true"),
		"trace to live":            h("Nats-Trace-Dest", "kx.live.main.S"),
		"trace to a host":          h("Nats-Trace-Dest", "kx.host.main.other.I.offer"),
	}
}

// deputyReplies are reply subjects on which nothing may ever arrive: all that the role
// cannot publish on itself.
func (w *walker) deputyReplies() []string {
	var out []string
	for _, c := range walkTable() {
		if c.sample == "" && !w.may(c.publish) {
			out = append(out, c.subject)
		}
	}
	return out
}

// ownSubjects is all that the role may publish on.
func (w *walker) ownSubjects() []string {
	var out []string
	for _, c := range walkTable() {
		if c.sample == "" && w.may(c.publish) {
			out = append(out, c.subject)
		}
	}
	return out
}

// TestRoleWalkReplyDeputies sends everything a role may send, with every reply subject
// it may not write on, and shows that nothing arrives there: no stream it reaches
// acknowledges, no get and no service answers. That the authority answers only to the
// caller's own inbox is shown where the authority is tested.
func TestRoleWalkReplyDeputies(t *testing.T) {
	t.Parallel()
	eachRole(t, func(w *walker) {
		t := w.t
		sent := map[string]bool{}
		for _, subject := range w.ownSubjects() {
			sent[subject] = true
		}
		for _, subject := range w.ownSubjects() {
			for _, reply := range w.deputyReplies() {
				w.send(subject, reply, nil)
			}
			for _, header := range deputyHeaders() {
				for _, reply := range []string{"kx.log.main.S", "kx.cmd.main.other.session.list", "_INBOX_main_other.x", "kx.live.main.S"} {
					w.send(subject, reply, header)
				}
			}
		}
		// A payload too large to be stored is one more thing a stream could complain of.
		if w.role == events.RoleExecutor {
			msg := &nats.Msg{Subject: "kx.out.main.me.S.X", Reply: "kx.log.main.S", Data: make([]byte, 200<<10)}
			if err := errors.Join(w.me.PublishMsg(msg), w.me.Flush()); err != nil {
				t.Fatal(err)
			}
			stored(t, w.b, w.me, "kx.out.main.me.S.mark")
			sent["kx.out.main.me.S.mark"] = true
		}
		w.expectOnly(sent)
		w.expectEmptyLog()
	})
}

// TestRoleWalkRequests sends to all that answers, with a reply where the caller may not
// write and with one in its own inbox: neither is answered.
func TestRoleWalkRequests(t *testing.T) {
	t.Parallel()
	eachRole(t, func(w *walker) {
		t := w.t
		js, err := jetstream.New(w.all)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), "kx.log.main.S", []byte("secret")); err != nil {
			t.Fatal(err)
		}
		w.heard() // the append and its answer
		own := w.me.NewInbox()
		answers, err := w.me.SubscribeSync(own)
		if err != nil {
			t.Fatal(err)
		}
		for _, service := range []string{
			"$JS.API.INFO", "$JS.API.STREAM.LIST", "$JS.API.STREAM.INFO.KX_LOG",
			"$JS.API.STREAM.MSG.GET.KX_LOG", "$JS.API.DIRECT.GET.KX_LOG.kx.log.main.S", "$JS.API.DIRECT.GET.KX_LOG",
			"$JS.API.STREAM.PURGE.KX_LOG", "$JS.API.STREAM.DELETE.KX_LOG", "$KV.kx_leases.main.target.t", "$SRV.PING",
			"$SYS.REQ.USER.INFO", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "kx.log.main.S", "kx.id.main.k.h",
			"kx.dead.main.me", "kx.snap.main.S", "kx.import.main.S",
		} {
			for _, reply := range []string{"kx.log.main.T", "kx.cmd.main.other.session.list", "_INBOX_main_other.x", "kx.live.main.S", own} {
				if err := w.me.PublishRequest(service, reply, []byte(`{"last_by_subj":"kx.log.main.S"}`)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.me.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := w.heard(); len(got) != 0 {
			t.Errorf("passed: %v", got)
		}
		if n, _, err := answers.Pending(); err != nil || n != 0 {
			t.Errorf("%d answers came, %v", n, err)
		}
		if log, err := js.Stream(t.Context(), events.StreamLog); err != nil || log.CachedInfo().State.Msgs != 1 {
			t.Errorf("the log was touched: %+v, %v", log.CachedInfo().State, err)
		}
	})
}

func (w *walker) send(subject, reply string, h nats.Header) {
	w.t.Helper()
	if err := w.me.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Header: h, Data: []byte("forged")}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.me.Flush(); err != nil {
		w.t.Fatal(err)
	}
}

// expectOnly fails if anything was heard on another subject than those sent to.
func (w *walker) expectOnly(sent map[string]bool) {
	w.t.Helper()
	stray := map[string]int{}
	for _, subject := range w.heard() {
		if !sent[subject] && !ownWork(subject) {
			stray[subject]++
		}
	}
	for subject, n := range stray {
		w.t.Errorf("%d messages arrived on %s", n, subject)
	}
}

// ownWork tells what this test itself asks of the output stream, and the answers to it:
// those go to inboxes with a long random name.
func ownWork(subject string) bool {
	return strings.HasPrefix(subject, "$JS.EVENT.ADVISORY.") ||
		(strings.HasPrefix(subject, "$JS.API.") && strings.Contains(subject, ".KX_OUT")) ||
		(strings.HasPrefix(subject, "_INBOX.") && len(subject) > 20)
}

// expectEmptyLog fails if anything but output is stored anywhere.
func (w *walker) expectEmptyLog() {
	w.t.Helper()
	js, err := jetstream.New(w.all)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range []string{events.StreamLog, events.StreamDead, events.StreamImport, events.StreamSnap, "KV_kx_leases"} {
		s, err := js.Stream(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		if n := s.CachedInfo().State.LastSeq; n != 0 {
			w.t.Errorf("%s has stored %d messages", name, n)
		}
	}
	out, err := js.Stream(w.t.Context(), events.StreamOut)
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := out.Info(w.t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		w.t.Fatal(err)
	}
	for subject := range info.State.Subjects {
		if w.role != events.RoleExecutor || (subject != "kx.out.main.me.S.X" && subject != "kx.out.main.me.S.mark") {
			w.t.Errorf("output was stored on %s", subject)
		}
	}
}

// TestHeadersOfOneExecutorDoNotHarmTheOutputOfAnother: the stream's own headers for
// rolling up, purging and deduplicating act on a whole stream.
func TestHeadersOfOneExecutorDoNotHarmTheOutputOfAnother(t *testing.T) {
	t.Parallel()
	w := newWalker(t, events.RoleExecutor)
	other := bustest.Connect(t, w.b, bustest.Principal(t, w.b, "main", "other", events.RoleExecutor))
	const theirs = "kx.out.main.other.S.X"
	for range 3 {
		if err := other.Publish(theirs, []byte("chunk")); err != nil {
			t.Fatal(err)
		}
	}
	s := stored(t, w.b, other, "kx.out.main.other.S.mark")
	for _, header := range deputyHeaders() {
		w.send("kx.out.main.me.S.X", "", header)
	}
	stored(t, w.b, w.me, "kx.out.main.me.S.mark")
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(theirs))
	if err != nil {
		t.Fatal(err)
	}
	if n := info.State.Subjects[theirs]; n != 3 {
		t.Errorf("%d of 3 chunks of the other executor are left", n)
	}
}

// TestDeputyTestsCanFail shows that the ear of the walk hears a deputy when there is
// one: an acknowledged stream answers to whatever reply it is given.
func TestDeputyTestsCanFail(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc, heard := bustest.System(t, b), listen(t, b, "kx.log.>")
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("kx.dead.main.me", "kx.log.main.S", []byte("x")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the acknowledgement is stored as if it were an event", func() bool {
		s, err := js.Stream(t.Context(), events.StreamLog)
		return err == nil && s.CachedInfo().State.Msgs == 1
	})
	if got := heard(); fmt.Sprint(got) != "[kx.log.main.S]" {
		t.Errorf("heard %v", got)
	}
}
