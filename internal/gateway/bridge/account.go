package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/gateway/platform"
)

// Config is one account. Conn, Name and Platform are needed.
type Config struct {
	// Conn is a gateway's connection; the caller closes it after Run. Bridges that stand by
	// for each other use one principal: what a person says is taken once per principal.
	Conn     *client.Conn
	Name     events.AccountName
	Platform platform.Platform
	// Policy is that of sessions which are made for new places.
	Policy events.Policy
	// Links are the codes of /link, shared by the accounts of a process; nil: none.
	Links *Links
	// TTL is how long this bridge may be silent before another takes over. Default 15 s.
	TTL time.Duration
	// SendTime bounds one try to send. Default 30 s.
	SendTime time.Duration
	// Attempts is how often a part is tried before it is given up. Default 12, which takes
	// about half an hour.
	Attempts int
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// Defaults of an account.
const (
	defaultTTL      = 15 * time.Second
	defaultSendTime = 30 * time.Second
	defaultAttempts = 12
	// standby is how often a bridge that stands by asks for the lease; it hears of its end
	// too, and only misses that while its connection is down.
	standby = 500 * time.Millisecond
)

// Account serves one account while it holds its lease, and stands by while another does.
type Account struct {
	cfg    Config
	keeper *client.Keeper

	mu      sync.Mutex
	serving bool
}

// New returns an account that is not served yet. The error says what the configuration
// lacks.
func New(cfg Config) (*Account, error) {
	switch {
	case cfg.Conn == nil || cfg.Platform == nil:
		return nil, errors.New("make account: a connection and a platform are needed")
	case cfg.Name.Validate() != nil:
		return nil, fmt.Errorf("make account: %w", cfg.Name.Validate())
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.TTL <= 0 {
		cfg.TTL = defaultTTL
	}
	if cfg.SendTime <= 0 {
		cfg.SendTime = defaultSendTime
	}
	if cfg.Attempts <= 0 {
		cfg.Attempts = defaultAttempts
	}
	cfg.Logger = cfg.Logger.With("account", cfg.Name)
	return &Account{cfg: cfg}, nil
}

// Serving reports whether this bridge speaks for the account now.
func (a *Account) Serving() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.serving
}

func (a *Account) setServing(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serving = on
}

// Run serves and stands by until ctx ends; it returns nil then. Call it once. It returns an
// error if the bus refuses the account for good.
func (a *Account) Run(ctx context.Context) error {
	var keeping sync.WaitGroup
	keep, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.keeper = client.NewKeeper(client.KeeperConfig{
		Caller: a.cfg.Conn, Instance: a.cfg.Conn.Instance(), NATS: a.cfg.Conn.NATS(), Logger: a.cfg.Logger,
	})
	keeping.Go(func() { a.keeper.Run(keep) })
	defer func() { stop(); keeping.Wait() }()
	for ctx.Err() == nil {
		held, err := a.acquire(ctx)
		if err != nil || held == nil {
			return err
		}
		a.cfg.Logger.Info("speaking for the account")
		a.tenure(ctx, held)
	}
	return nil
}

// tenure serves the account for as long as the lease is held, and gives it back.
func (a *Account) tenure(ctx context.Context, held *client.Held) {
	t := newTenure(a.cfg, held)
	a.setServing(true)
	err := t.run(ctx)
	a.setServing(false)
	if err != nil && ctx.Err() == nil {
		a.cfg.Logger.Warn("no longer speaking for the account", "error", err)
	}
	if held.Final() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := held.Release(ctx); err != nil {
		a.cfg.Logger.Warn("give the account back", "error", err)
	}
}

func (a *Account) key() events.LeaseKey {
	return events.LeaseKey{Profile: a.cfg.Conn.Principal().Profile, Kind: events.LeaseAccount, Name: string(a.cfg.Name)}
}

// acquire waits for the lease; nil when ctx has ended.
func (a *Account) acquire(ctx context.Context) (*client.Held, error) {
	ended := make(chan struct{}, 1)
	unwatch, err := client.WatchLease(a.cfg.Conn.NATS(), a.key(), func(rec events.LeaseRecord) {
		if rec.State != events.LeaseHeld {
			select {
			case ended <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer unwatch()
	tick := time.NewTicker(standby)
	defer tick.Stop()
	for told := false; ; {
		held, err := a.keeper.Acquire(ctx, a.key(), client.LeaseTerms{TTL: a.cfg.TTL})
		info, _ := events.Lookup(events.CodeOf(err))
		switch {
		case err == nil:
			return held, nil
		case ctx.Err() != nil:
			return nil, nil
		case !info.Retryable:
			return nil, fmt.Errorf("speak for account %s: %w", a.cfg.Name, err)
		case !told:
			a.cfg.Logger.Info("standing by", "reason", err)
			told = true
		}
		select {
		case <-ended:
		case <-tick.C:
		case <-ctx.Done():
			return nil, nil
		}
	}
}
