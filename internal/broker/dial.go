package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"

	"golang.org/x/sys/unix"

	"keryx/client"
	"keryx/events"
)

// ErrNotRunning says that no bus serves a directory.
var ErrNotRunning = errors.New("no bus runs on this directory")

// OperatorGrant is the right to act as a profile's operator. It ends with
// [OperatorGrant.Close], with the process, or with the bus; connections made with its
// credentials are then cut.
type OperatorGrant struct {
	URL         string
	Credentials client.Credentials

	conn *net.UnixConn
}

// Wait blocks until the right has ended: the bus is gone, or Close was called.
func (g *OperatorGrant) Wait() {
	var b [1]byte
	_, _ = g.conn.Read(b[:]) // the bus says nothing more; any result is the end
}

// Close gives the right back. It is safe to call twice.
func (g *OperatorGrant) Close() error {
	if err := g.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close operator grant: %w", err)
	}
	return nil
}

// DialOperator asks the bus that serves dir for the rights of the profile's operator.
// It returns an error wrapping [ErrNotRunning] if there is none, and an [*events.Error]
// if the bus refuses. The caller closes the grant.
func DialOperator(ctx context.Context, dir string, profile events.Profile) (*OperatorGrant, error) {
	c, err := dialUnix(ctx, filepath.Join(dir, runName, socketName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, fmt.Errorf("dial operator socket of %s: %w", dir, ErrNotRunning)
	}
	if err != nil {
		return nil, fmt.Errorf("dial operator socket of %s: %w", dir, err)
	}
	g, err := ask(ctx, c, profile)
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) { // it ended meanwhile
		return nil, errors.Join(fmt.Errorf("ask for operator rights: %w", ErrNotRunning), c.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("ask for operator rights: %w", err), c.Close())
	}
	return g, nil
}

// ask sends the request and reads the answer, for as long as ctx allows.
func ask(ctx context.Context, c *net.UnixConn, profile events.Profile) (*OperatorGrant, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // the read below then fails
	defer stop()
	if err := json.NewEncoder(c).Encode(operatorAsk{Profile: profile}); err != nil {
		return nil, fmt.Errorf("send: %w", errors.Join(context.Cause(ctx), err))
	}
	var r operatorReply
	if err := json.NewDecoder(c).Decode(&r); err != nil {
		return nil, fmt.Errorf("read answer: %w", errors.Join(context.Cause(ctx), err))
	}
	if r.Error != nil {
		return nil, r.Error
	}
	return &OperatorGrant{
		URL: r.URL, conn: c,
		Credentials: client.Credentials{
			Principal: events.Principal{Profile: profile, Name: OperatorName, Role: events.RoleOperator},
			Seed:      []byte(r.Seed),
		},
	}, nil
}
