package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"
)

// SyncMode says when an append reaches the disk.
type SyncMode int

const (
	// SyncAlways syncs every append before it is answered: nothing answered is lost
	// when the machine loses power.
	SyncAlways SyncMode = iota
	// SyncInterval syncs once a second: a power failure may lose the last second of
	// answered appends. A killed process loses nothing.
	SyncInterval
)

const (
	// DefaultMaxStore is the size of the store when Config.MaxStore is 0, 16 GiB.
	DefaultMaxStore = 16 << 30
	// MinMaxStore is the smallest store that is accepted, 64 MiB.
	MinMaxStore = 64 << 20

	defaultListen = "127.0.0.1:0"
	syncEvery     = time.Second
)

// Config says where a broker keeps its store and how it serves. Dir is needed; the zero
// value of everything else is a sound choice.
type Config struct {
	// Dir is the bus directory; it is created with mode 0700 if missing. The store is
	// in Dir/store, the principals in Dir/principals.yaml, Dir/run belongs to the
	// running process.
	Dir string
	// Listen is host:port. Empty or port 0 picks a free port; empty listens on
	// loopback only.
	Listen string
	// Sync is when appends are synced.
	Sync SyncMode
	// MaxStore bounds the store, in bytes; 0 means [DefaultMaxStore]. Output and dead
	// letters take at most half of it.
	MaxStore int64
	// Private serves only this process: there is no operator socket and the run files
	// name nobody. For one-shot commands, which end when they like.
	Private bool
	// Free returns how many bytes the store may still grow by; nil asks the filesystem
	// of Dir. It has to be safe for concurrent use.
	Free func() (uint64, error)
	// Inspect is called under the directory's lock before the server opens the store; an
	// error ends the start. Nil for nothing.
	Inspect func(context.Context) error
	// Logger defaults to slog.Default.
	Logger *slog.Logger
}

// withDefaults returns c with its zero values filled in, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("broker: Config.Dir is empty")
	}
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if c.MaxStore == 0 {
		c.MaxStore = DefaultMaxStore
	}
	if c.Free == nil {
		dir := c.Dir
		c.Free = func() (uint64, error) { return freeOf(dir) }
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.MaxStore < MinMaxStore {
		return c, fmt.Errorf("broker: Config.MaxStore is %d bytes, at least %d are needed", c.MaxStore, MinMaxStore)
	}
	if c.Sync != SyncAlways && c.Sync != SyncInterval {
		return c, fmt.Errorf("broker: Config.Sync %d is no SyncMode", c.Sync)
	}
	_, _, err := c.hostPort()
	return c, err
}

// hostPort splits Listen; port -1 asks the server for a free one.
func (c Config) hostPort() (string, int, error) {
	host, text, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "", 0, fmt.Errorf("read listen address %q: %w", c.Listen, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("read port of listen address %q: %w", c.Listen, err)
	}
	if port == 0 {
		return host, -1, nil
	}
	return host, int(port), nil
}
