package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"keryx/events"
	"keryx/internal/process"
)

const (
	// askTime is how long a caller of the operator socket may take to ask.
	askTime = 5 * time.Second
	// acceptPause keeps a lasting failure to accept from filling the log.
	acceptPause = 50 * time.Millisecond
	// maxAsk is the largest request, in bytes.
	maxAsk = 4096
)

// operatorAsk is what a caller of the socket sends: one JSON line.
type operatorAsk struct {
	Profile events.Profile `json:"profile"`
}

// operatorReply answers it: one JSON line. The credentials are good until the caller
// closes the connection.
type operatorReply struct {
	URL  string `json:"url,omitempty"`
	Seed string `json:"seed,omitempty"`
	// Error is why there are no credentials.
	Error *events.Error `json:"error,omitempty"`
}

// operatorSocket vends operator credentials to the owner of the process.
type operatorSocket struct {
	b        *Broker
	listener *net.UnixListener
	path     string
	done     sync.WaitGroup

	mu     sync.Mutex
	open   map[*net.UnixConn]struct{}
	closed bool
}

func serveOperators(b *Broker) (*operatorSocket, error) {
	path := filepath.Join(b.cfg.Dir, runName, socketName)
	l, err := listenUnix(path)
	if err != nil {
		return nil, err
	}
	s := &operatorSocket{b: b, listener: l, path: path, open: map[*net.UnixConn]struct{}{}}
	s.done.Go(s.accept)
	return s, nil
}

func (s *operatorSocket) accept() {
	for {
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files: it passes
			s.b.cfg.Logger.Error("operator socket", "error", err)
			time.Sleep(acceptPause)
			continue
		}
		if s.remember(c) {
			s.done.Go(func() { s.serve(c) })
		}
	}
}

// remember keeps c so that close can end it; false when the socket is closing.
func (s *operatorSocket) remember(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		hangUp(c, s.b.cfg.Logger)
		return false
	}
	s.open[c] = struct{}{}
	return true
}

func (s *operatorSocket) forget(c *net.UnixConn) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
	hangUp(c, s.b.cfg.Logger)
}

// serve answers one caller and holds its grant for as long as it stays.
func (s *operatorSocket) serve(c *net.UnixConn) {
	defer s.forget(c)
	log := s.b.cfg.Logger
	ask, err := s.hear(c)
	if err != nil {
		log.Warn("operator socket: refused", "error", err)
		s.reply(c, operatorReply{Error: asRefusal(err)})
		return
	}
	p, pair, err := s.b.registry.grant(ask.Profile)
	if err != nil {
		log.Error("operator socket: no key", "error", err)
		s.reply(c, operatorReply{Error: asRefusal(err)})
		return
	}
	creds, err := credentials(p, pair)
	public, keyErr := pair.PublicKey()
	if err := errors.Join(err, keyErr); err != nil {
		log.Error("operator socket: no key", "error", err)
		return
	}
	defer s.b.auth.revoke(func() []string { s.b.registry.revokeGrant(public); return []string{public} })
	log.Debug("operator credentials granted", "profile", ask.Profile)
	if s.reply(c, operatorReply{URL: s.b.URL(), Seed: string(creds.Seed)}) {
		waitClosed(c, log)
	}
}

// hear reads what a caller wants and checks who it is, in this order: hanging up on what
// was not read would take the answer from a caller that is refused.
func (s *operatorSocket) hear(c *net.UnixConn) (operatorAsk, error) {
	var ask operatorAsk
	if err := c.SetReadDeadline(time.Now().Add(askTime)); err != nil {
		return ask, fmt.Errorf("bound request: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(c, maxAsk)).Decode(&ask); err != nil {
		return ask, events.Errorf(events.CodeInvalid, "read request: %v", err)
	}
	if err := checkPeer(c); err != nil {
		return ask, err
	}
	if err := ask.Profile.Validate(); err != nil {
		return ask, events.Errorf(events.CodeInvalid, "%v", err)
	}
	return ask, c.SetReadDeadline(time.Time{})
}

func (s *operatorSocket) reply(c *net.UnixConn, r operatorReply) bool {
	if err := json.NewEncoder(c).Encode(r); err != nil {
		s.b.cfg.Logger.Debug("operator socket: caller left", "error", err)
		return false
	}
	return true
}

// close ends every grant and joins what serves them.
func (s *operatorSocket) close() error {
	err := s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		// A read that is closed under it ends; serve then hangs up.
		if readErr := c.CloseRead(); !errors.Is(readErr, unix.ENOTCONN) {
			err = errors.Join(err, readErr)
		}
	}
	s.mu.Unlock()
	s.done.Wait()
	if rmErr := os.Remove(s.path); rmErr != nil && !errors.Is(rmErr, os.ErrNotExist) {
		err = errors.Join(err, rmErr)
	}
	if err != nil {
		return fmt.Errorf("close operator socket: %w", err)
	}
	return nil
}

// checkPeer refuses callers that are neither the owner of this process nor root, and
// commands that sessions run: they are the owner's, too, and must not be the operator.
func checkPeer(c *net.UnixConn) error {
	cred, err := peerOf(c)
	if err != nil {
		return err
	}
	if owner := os.Geteuid(); int(cred.Uid) != owner && cred.Uid != 0 {
		return events.Errorf(events.CodeForbidden, "user %d is not the owner of the bus (user %d)", cred.Uid, owner)
	}
	inside, err := process.Inside(int(cred.Pid))
	if err != nil {
		return fmt.Errorf("look at caller: %w", err) // it has gone
	}
	if inside {
		return events.Errorf(events.CodeForbidden, "process %d is a command of a session, which may not act as the operator", cred.Pid)
	}
	return nil
}

func peerOf(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("look at caller: %w", err)
	}
	var cred *unix.Ucred
	var sockErr error
	err = raw.Control(func(fd uintptr) {
		cred, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, sockErr); err != nil {
		return nil, fmt.Errorf("look at caller: %w", err)
	}
	return cred, nil
}

// asRefusal tells a caller no more than it needs of a fault of the bus.
func asRefusal(err error) *events.Error {
	var e *events.Error
	if errors.As(err, &e) {
		return e
	}
	return events.Errorf(events.CodeInternal, "the log of the bus says more")
}

// waitClosed returns when the caller has gone. It has nothing more to say, so whatever
// comes is dropped.
func waitClosed(c *net.UnixConn, log *slog.Logger) {
	if _, err := io.Copy(io.Discard, c); err != nil {
		log.Debug("operator socket: caller left", "error", err)
	}
}

func hangUp(c *net.UnixConn, log *slog.Logger) {
	if err := c.Close(); err != nil {
		log.Debug("operator socket: hang up", "error", err)
	}
}
