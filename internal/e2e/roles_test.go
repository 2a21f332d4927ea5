package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/node"
)

// The test binary is a process of its own when these say so.
const (
	roleVar  = "KERYX_E2E_ROLE"
	dirVar   = "KERYX_E2E_DIR"
	addrVar  = "KERYX_E2E_ADDR"
	credsVar = "KERYX_E2E_CREDS"
	fatalVar = "KERYX_E2E_FATAL"
)

var roles = map[string]func() int{"bus": mortalBus, "puppet": puppet, "holder": holdLeases}

// mortalBus serves a directory and is killed as by kill -9 at the moment at which the
// sequence that a file names is on disk, before it answers, folds or tells anything.
func mortalBus() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	n, err := node.Start(ctx, node.Config{
		Dir: os.Getenv(dirVar), Listen: os.Getenv(addrVar), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Written: dieAt(os.Getenv(fatalVar)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-ctx.Done()
	if err := n.Stop(context.WithoutCancel(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func dieAt(file string) func(events.Sequence) {
	return func(s events.Sequence) {
		text, err := os.ReadFile(file)
		if err != nil {
			return // it is not to die
		}
		if fatal, err := strconv.ParseUint(string(text), 10, 64); err != nil || uint64(s) >= fatal {
			_ = os.Remove(file) // once only
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it is delivered
		}
	}
}

// pull is what a puppet is told to do, a line of JSON.
type pull struct {
	Type events.Type
	ID   events.CommandID
	Data json.RawMessage
	// Lost sends the command and does not wait for its answer.
	Lost bool
}

// said is what a puppet says, a line of JSON: an answer, or an order it was told.
type said struct {
	Instance events.Instance `json:",omitempty"`
	Told     events.HostVerb `json:",omitempty"`
	Status   string          `json:",omitempty"`
	Data     json.RawMessage `json:",omitempty"`
}

// puppet is a principal's process that does what it is told on standard input, and nothing
// else: it stops wherever it is left.
func puppet() int {
	creds, err := client.ReadCredentials(os.Getenv(credsVar))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c, err := client.Connect(context.Background(), client.Config{
		URL: "nats://" + os.Getenv(addrVar), Credentials: creds, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p := &hanging{conn: c, out: json.NewEncoder(os.Stdout)}
	if err := p.follow(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// hanging is a puppet on its strings.
type hanging struct {
	conn *client.Conn
	mu   sync.Mutex
	out  *json.Encoder
}

func (p *hanging) say(s said) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(s) // whoever reads it is gone, and this process soon too
}

func (p *hanging) follow() error {
	who := p.conn.Principal()
	if who.Role == events.RoleHost {
		_, err := p.conn.NATS().Subscribe(events.HostAll(who.Profile, who.Name, p.conn.Instance()), func(m *nats.Msg) {
			p.say(said{Told: events.HostVerb(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]), Data: m.Data})
		})
		if err := errors.Join(err, p.conn.NATS().Flush()); err != nil {
			return err
		}
	}
	p.say(said{Instance: p.conn.Instance()})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var do pull
		if err := json.Unmarshal(in.Bytes(), &do); err != nil {
			return err
		}
		if err := p.do(do); err != nil {
			return err
		}
	}
	return in.Err()
}

// do sends a command, again until it is answered.
func (p *hanging) do(do pull) error {
	who := p.conn.Principal()
	ev, err := events.NewCommand(who, do.Type, do.ID, time.Now(), do.Data)
	if err != nil {
		return err
	}
	subject, err := events.CmdSubject(who.Profile, who.Name, do.Type)
	if err != nil {
		return err
	}
	m := nats.NewMsg(subject)
	if m.Header, m.Data, err = events.Encode(ev); err != nil {
		return err
	}
	if do.Lost {
		m.Reply = events.InboxPrefix(who.Profile, who.Name) + ".nobody"
		return errors.Join(p.conn.NATS().PublishMsg(m), p.conn.NATS().Flush())
	}
	for {
		if a, err := p.conn.NATS().RequestMsg(m, time.Second); err == nil {
			p.say(said{Status: a.Header.Get(events.HeaderStatus), Data: a.Data})
			return nil
		}
	}
}
