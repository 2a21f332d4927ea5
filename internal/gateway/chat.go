package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"keryx/client"
	"keryx/events"
)

// Config says which conversation to hold. Conn and Key are needed.
type Config struct {
	// Conn is a gateway's or operator's connection; the caller closes it after Run.
	Conn *client.Conn
	// Operator is a connection of the operator, if it is the operator who sits at the chat:
	// commands are started and stopped in that name. Nil: the chat starts none. The caller
	// closes it after Run.
	Operator *client.Conn
	// Key is the gateway session key of the conversation.
	Key events.GatewaySessionKey
	// Source and Surface say where messages come from, e.g. "cli" and "terminal".
	Source, Surface string
	// Hosts are the hosts wanted; none for the profile's default.
	Hosts []events.PrincipalName
	// Target is where the session's host runs commands by default; empty for none.
	Target events.TargetName
	// User is the person at the chat as this platform knows them: who answers approvals
	// when no operator sits at it. The session's policy has to list them.
	User events.PlatformUser
	// Approvers are the users who may answer approvals of a new session.
	Approvers []events.PlatformUser
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// MaxInFlight is how many own messages may wait for their turn to end.
const MaxInFlight = 64

// openWithin bounds the registration of the session.
const openWithin = 60 * time.Second

// Chat is one conversation. Make it with [Open]; [Chat.Run] has to run for anything to
// be told or settled.
type Chat struct {
	cfg     Config
	conn    *client.Conn
	session events.SessionID
	wanted  []events.PrincipalName
	from    events.Sequence // the record is followed from here
	created bool
	watch   chan events.RunID // setups to be told of
	said    chan string       // lines of them

	mu sync.Mutex
	// guarded by mu
	own     outbox
	running *Turn
	host    events.PrincipalName
	epoch   events.Epoch
	turns   int
	stop    bool                                    // the next own turn is to be interrupted
	given   map[events.CommandID]events.CommandName // own slash commands whose outcome is to be told
	changed chan struct{}                           // closed when something that others wait for changed
	ended   error                                   // why Run has ended
}

// Open registers the conversation's session, or finds it.
func Open(ctx context.Context, cfg Config) (*Chat, error) {
	if cfg.Conn == nil || cfg.Key == "" {
		return nil, errors.New("open chat: a connection and a key are needed")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	reg, err := cfg.Conn.Register(ctx, events.Names{
		GatewaySessionKey: cfg.Key, Source: cfg.Source, Surface: cfg.Surface,
	}, events.Policy{Hosts: cfg.Hosts, Target: cfg.Target, Approvers: cfg.Approvers})
	if err != nil {
		return nil, fmt.Errorf("open chat %q: %w", cfg.Key, err)
	}
	view, err := cfg.Conn.Show(ctx, string(reg.Session))
	if err != nil {
		return nil, fmt.Errorf("open chat %q: %w", cfg.Key, err)
	}
	c := &Chat{
		cfg: cfg, conn: cfg.Conn, session: reg.Session, wanted: view.WantedHosts, from: view.LastSeq + 1,
		created: reg.Created, host: view.Host, epoch: view.Epoch, turns: view.Turns, changed: make(chan struct{}),
		watch: make(chan events.RunID, setupNotices), said: make(chan string, setupNotices),
		given: make(map[events.CommandID]events.CommandName),
	}
	c.own.init()
	if view.Running != nil {
		c.running = &Turn{ID: view.Running.Turn, Host: view.Running.Host, Began: view.Running.StartedAt}
	}
	return c, nil
}

// Session returns the id of the conversation's session.
func (c *Chat) Session() events.SessionID { return c.session }

// Greeting says in one line what the chat goes on with.
func (c *Chat) Greeting() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.created {
		return fmt.Sprintf("new session %s for %s; /help lists commands", c.session, c.cfg.Key)
	}
	return fmt.Sprintf("session %s of %s, epoch %s, %d turns so far; /help lists commands", c.session, c.cfg.Key, c.epoch, c.turns)
}

// changedLocked wakes whoever waits.
func (c *Chat) changedLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// await waits until ok says yes, under mu, of the state.
func (c *Chat) await(ctx context.Context, ok func() bool) error {
	for {
		c.mu.Lock()
		done, changed, ended := ok(), c.changed, c.ended
		c.mu.Unlock()
		switch {
		case done:
			return nil
		case ended != nil:
			return ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
