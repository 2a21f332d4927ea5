package broker_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

// subjectClass is one row of what the walk expects. The table is written out by hand,
// with literal subjects and independent of the rights table, so that a right that is
// widened there, or a subject that is built differently, fails here.
//
// The caller is principal "me" of profile "main"; "other" is another principal of the
// profile, "lab" another profile. Roles are given by their initials: Host, Executor,
// Gateway, Operator, obserVer.
type subjectClass struct {
	name    string
	subject string
	publish string // roles that may
	hear    string // roles that may
	sample  string // for a pattern: a literal subject it covers
}

const all = "HEGOV"

func walkTable() []subjectClass {
	return []subjectClass{
		{name: "log of a session", subject: "kx.log.main.S"},
		{name: "log of the profile", subject: "kx.log.main._profile"},
		{name: "log of another profile", subject: "kx.log.lab.S"},
		{name: "the whole log", subject: "kx.log.>", sample: "kx.log.main.S"},
		{name: "names", subject: "kx.id.main.gateway_session_key.h"},
		{name: "all names", subject: "kx.id.>", sample: "kx.id.main.task_id.h"},
		{name: "snapshots", subject: "kx.snap.main.S"},
		{name: "imports", subject: "kx.import.main.S"},
		{name: "own dead letters", subject: "kx.dead.main.me"},
		{name: "dead letters of another", subject: "kx.dead.main.other"},

		{name: "live", subject: "kx.live.main.S", hear: all},
		{name: "live, the whole profile", subject: "kx.live.main.>", sample: "kx.live.main.S", hear: all},
		{name: "live, another profile", subject: "kx.live.lab.S"},
		{name: "live, every profile", subject: "kx.live.>", sample: "kx.live.main.S"},
		{name: "live, profile by wildcard", subject: "kx.live.*.S", sample: "kx.live.lab.S"},
		{name: "leases", subject: "kx.lease.main.target.t", hear: all},
		{name: "leases of another profile", subject: "kx.lease.lab.target.t"},
		{name: "leases of the bus", subject: "kx.lease._bus.bus.authority"},

		{name: "own commands", subject: "kx.cmd.main.me.session.list", publish: all},
		{name: "commands of another", subject: "kx.cmd.main.other.session.list"},
		{name: "commands in another profile", subject: "kx.cmd.lab.me.session.list"},
		{name: "commands of the authority", subject: "kx.cmd.main.keryx-authority.session.list"},
		{name: "own commands, too short", subject: "kx.cmd.main.me.list"},
		{name: "own commands, too long", subject: "kx.cmd.main.me.session.list.more"},
		{name: "all commands", subject: "kx.cmd.>", sample: "kx.cmd.main.me.session.list"},

		{name: "told to this host", subject: "kx.host.main.me.I.offer", hear: "H"},
		{name: "told to this host's other instance", subject: "kx.host.main.me.J.offer", hear: "H"},
		{name: "told to another host", subject: "kx.host.main.other.I.offer"},
		{name: "told to a host of another profile", subject: "kx.host.lab.me.I.offer"},
		{name: "told to all hosts", subject: "kx.host.main.>", sample: "kx.host.main.other.I.offer"},
		{name: "told to this executor", subject: "kx.exec.main.me.I.start", hear: "E"},
		{name: "told to this executor's other instance", subject: "kx.exec.main.me.J.stop", hear: "E"},
		{name: "told to another executor", subject: "kx.exec.main.other.I.start"},
		{name: "told to an executor of another profile", subject: "kx.exec.lab.me.I.start"},

		{name: "asked before a tool runs", subject: "kx.policy.main.me.I.ask", hear: "GO"},
		{name: "asked of another", subject: "kx.policy.main.other.I.ask"},
		{name: "asked in another profile", subject: "kx.policy.lab.me.I.ask"},
		{name: "all questions", subject: "kx.policy.main.>", sample: "kx.policy.main.other.I.ask"},

		{name: "told to this handler", subject: "kx.handler.main.me.I.invoke", hear: "HEGO"},
		{name: "told to another handler", subject: "kx.handler.main.other.I.invoke"},
		{name: "told to a handler of another profile", subject: "kx.handler.lab.me.I.invoke"},
		{name: "told to all handlers", subject: "kx.handler.main.>", sample: "kx.handler.main.other.I.invoke"},

		{name: "own output", subject: "kx.out.main.me.S.X", publish: "E", hear: all},
		{name: "output of another", subject: "kx.out.main.other.S.X", hear: all},
		{name: "output in another profile", subject: "kx.out.lab.me.S.X"},
		{name: "own output, too short", subject: "kx.out.main.me.S", hear: all},
		{name: "all output", subject: "kx.out.>", sample: "kx.out.main.me.S.X"},
		{name: "own reply pieces", subject: "kx.part.main.me.S.T", publish: "H", hear: all},
		{name: "reply pieces of another", subject: "kx.part.main.other.S.T", hear: all},
		{name: "reply pieces in another profile", subject: "kx.part.lab.me.S.T"},

		{name: "typing as oneself", subject: "kx.tty.main.other.me.S.X", publish: "HGO"},
		{name: "typing as another", subject: "kx.tty.main.other.third.S.X"},
		{name: "typed into own terminals", subject: "kx.tty.main.me.other.S.X", hear: "E"},
		{name: "typing in another profile", subject: "kx.tty.lab.other.me.S.X"},
		{name: "all typing", subject: "kx.tty.main.>", sample: "kx.tty.main.other.me.S.X"},
		{name: "own word on what another typed", subject: "kx.typed.main.me.other.S.X", publish: "E"},
		{name: "another's word on what another typed", subject: "kx.typed.main.other.third.S.X"},
		{name: "word on what oneself typed", subject: "kx.typed.main.other.me.S.X", hear: "HGO"},
		{name: "word on typing in another profile", subject: "kx.typed.lab.other.me.S.X"},
		{name: "all words on typing", subject: "kx.typed.main.>", sample: "kx.typed.main.other.third.S.X"},
		{name: "views, reserved", subject: "kx.view.main.me.S.t"},
		{name: "input, reserved", subject: "kx.input.main.other.me.S.t"},

		{name: "own inbox", subject: "_INBOX_main_me.x", hear: all},
		{name: "own inbox, deeper", subject: "_INBOX_main_me.x.1", hear: all},
		{name: "inbox of another", subject: "_INBOX_main_other.x"},
		{name: "inbox of another, all of it", subject: "_INBOX_main_other.>", sample: "_INBOX_main_other.x"},
		{name: "inbox in another profile", subject: "_INBOX_lab_me.x"},
		{name: "plain inbox", subject: "_INBOX.x"},
		{name: "plain inboxes", subject: "_INBOX.>", sample: "_INBOX.x"},
		{name: "inboxes by wildcard", subject: "*.x", sample: "_INBOX_main_other.x"},
		{name: "inboxes by wider wildcard", subject: "*.>", sample: "_INBOX_main_other.x"},
		{name: "everything", subject: ">", sample: "_INBOX_main_other.x"},
		{name: "all of the bus", subject: "kx.>", sample: "kx.host.main.other.I.offer"},
		{name: "all of the profile", subject: "kx.*.main.>", sample: "kx.cmd.main.other.session.list"},

		{name: "stream API", subject: "$JS.API.STREAM.INFO.KX_LOG"},
		{name: "stream API, all", subject: "$JS.API.>", sample: "$JS.API.INFO"},
		{name: "stream get", subject: "$JS.API.STREAM.MSG.GET.KX_LOG"},
		{name: "stream purge", subject: "$JS.API.STREAM.PURGE.KX_LOG"},
		{name: "direct get", subject: "$JS.API.DIRECT.GET.KX_LOG"},
		{name: "direct get of a subject", subject: "$JS.API.DIRECT.GET.KX_LOG.kx.log.main.S"},
		{name: "direct get of output", subject: "$JS.API.DIRECT.GET.KX_OUT"},
		{name: "consumer create", subject: "$JS.API.CONSUMER.CREATE.KX_LOG.c.kx.log.main.S"},
		{name: "consumer next", subject: "$JS.API.CONSUMER.MSG.NEXT.KX_LOG.c"},
		{name: "acknowledgement", subject: "$JS.ACK.KX_LOG.c.1.1.1.1.1"},
		{name: "flow control", subject: "$JS.FC.KX_LOG.c.x"},
		{name: "stream events", subject: "$JS.EVENT.ADVISORY.API"},
		{name: "lease record", subject: "$KV.kx_leases.main.target.t"},
		{name: "lease records, all", subject: "$KV.>", sample: "$KV.kx_leases.main.target.t"},
		{name: "services", subject: "$SRV.PING"},
		{name: "services, all", subject: "$SRV.>", sample: "$SRV.INFO"},
		{name: "system requests", subject: "$SYS.REQ.SERVER.PING"},
		{name: "system user info", subject: "$SYS.REQ.USER.INFO"},
		{name: "system events", subject: "$SYS.>", sample: "$SYS.ACCOUNT.$G.CONNECT"},
		{name: "outside of the bus", subject: "some.subject"},
	}
}

func (c subjectClass) literal() string {
	if c.sample != "" {
		return c.sample
	}
	return c.subject
}

// walker is a principal of one role at a bus, and an ear that hears everything.
type walker struct {
	t     *testing.T
	b     *broker.Broker
	role  events.Role
	me    *nats.Conn
	all   *nats.Conn
	heard func() []string
}

func newWalker(t *testing.T, role events.Role) *walker {
	t.Helper()
	b := bustest.Broker(t)
	w := &walker{t: t, b: b, role: role, all: bustest.System(t, b), heard: listen(t, b, ">")}
	w.me = bustest.Connect(t, b, bustest.Principal(t, b, "main", "me", role))
	return w
}

func (w *walker) may(roles string) bool {
	initial := map[events.Role]string{
		events.RoleHost: "H", events.RoleExecutor: "E", events.RoleGateway: "G",
		events.RoleOperator: "O", events.RoleObserver: "V",
	}[w.role]
	return strings.Contains(roles, initial)
}

// eachRole runs f for every role there is.
func eachRole(t *testing.T, f func(w *walker)) {
	t.Helper()
	for _, role := range events.Roles() {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			f(newWalker(t, role))
		})
	}
}

func TestRoleWalkPublish(t *testing.T) {
	t.Parallel()
	eachRole(t, func(w *walker) {
		t := w.t
		for _, c := range walkTable() {
			if c.sample != "" {
				continue
			}
			if err := errors.Join(w.me.Publish(c.subject, []byte("x")), w.me.Flush()); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if passed := len(w.heard()) > 0; passed != w.may(c.publish) {
				t.Errorf("%s: publish on %s passed: %v, want %v", c.name, c.subject, passed, !passed)
			}
		}
	})
}

func TestRoleWalkSubscribe(t *testing.T) {
	t.Parallel()
	eachRole(t, func(w *walker) {
		t := w.t
		for _, c := range walkTable() {
			for _, queue := range []string{"", "q"} {
				if got := w.hears(c.subject, queue, c.literal()); got != w.may(c.hear) {
					t.Errorf("%s: a subscription to %s with queue %q hears %s: %v, want %v",
						c.name, c.subject, queue, c.literal(), got, !got)
				}
			}
		}
	})
}

// hears subscribes to pattern and tells whether a message on subject comes.
func (w *walker) hears(pattern, queue, subject string) bool {
	w.t.Helper()
	got := make(chan *nats.Msg, 16)
	mark := w.me.NewInbox()
	marks, err := w.me.ChanSubscribe(mark, got)
	if err != nil {
		w.t.Fatal(err)
	}
	sub, err := w.me.ChanQueueSubscribe(pattern, queue, got)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(w.me.Flush(), w.all.Publish(subject, []byte("x")), w.all.Publish(mark, nil), w.all.Flush()); err != nil {
		w.t.Fatal(err)
	}
	var heard bool
	for m := range got {
		if m.Subject == mark {
			break
		}
		heard = true
	}
	// A refused subscription is closed by its refusal already.
	for _, s := range []*nats.Subscription{sub, marks} {
		if err := s.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrBadSubscription) {
			w.t.Fatal(err)
		}
	}
	return heard
}

// TestRoleWalkQueueGroups shows that joining a group by name takes no messages from
// members on subjects that one may not hear.
func TestRoleWalkQueueGroups(t *testing.T) {
	t.Parallel()
	eachRole(t, func(w *walker) {
		t := w.t
		const work = "kx.cmd.main.other.session.list"
		member, err := w.all.QueueSubscribeSync(work, "authority")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.me.QueueSubscribeSync(work, "authority"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.all.Flush(), w.me.Flush()); err != nil {
			t.Fatal(err)
		}
		const sent = 50
		for range sent {
			if err := w.all.Publish(work, nil); err != nil {
				t.Fatal(err)
			}
		}
		for i := range sent {
			if _, err := member.NextMsg(5 * time.Second); err != nil {
				t.Fatalf("message %d of %d did not reach the group's member: %v", i+1, sent, err)
			}
		}
	})
}

// TestRefusedPublishIsToldToTheSender shows that a sender need not wait for a timeout.
func TestRefusedPublishIsToldToTheSender(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	refused := make(chan error, 1)
	nc := bustest.Connect(t, b, bustest.Principal(t, b, "main", "me", events.RoleHost),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err := errors.Join(nc.Publish("kx.log.main.S", nil), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("told %v, want a permissions violation", err)
	}
}

// TestWalkKnowsEveryRoleAndSubject keeps the walk from going blind.
func TestWalkKnowsEveryRoleAndSubject(t *testing.T) {
	t.Parallel()
	want := []events.Role{events.RoleHost, events.RoleExecutor, events.RoleGateway, events.RoleOperator, events.RoleObserver}
	if !slices.Equal(events.Roles(), want) {
		t.Errorf("roles are %v; the walk knows %v", events.Roles(), want)
	}
}
