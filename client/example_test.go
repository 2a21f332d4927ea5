package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"keryx/client"
	"keryx/events"
	"keryx/internal/node"
)

// ExampleConn_ServeHost is a whole host: it answers every message in upper case.
func ExampleConn_ServeHost() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	bus, stop := exampleBus(ctx)
	defer stop()

	conn := bus("shouter", events.RoleHost) // client.Connect with the host's credentials
	defer conn.Close()
	serving, stopServing := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		served <- conn.ServeHost(serving, client.HostConfig{
			Handle: func(_ context.Context, t *client.Turn) client.Result {
				return client.Result{Reply: strings.ToUpper(t.Items[0].Body.Text)}
			},
		})
	}()

	fmt.Println(say(ctx, bus, "hello"))
	stopServing()
	fmt.Println("stopped:", <-served)
	// Output:
	// HELLO
	// stopped: <nil>
}

// ExampleConn_Submit is a gateway: it brings a message into a session, which it registers
// by its own key, and prints the reply.
func ExampleConn_Submit() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	bus, stop := exampleBus(ctx)
	defer stop()
	defer serveEcho(bus)()

	conn := bus("chat", events.RoleGateway) // client.Connect with the gateway's credentials
	defer conn.Close()
	if _, err := conn.Register(ctx, events.Names{GatewaySessionKey: "chat:42"}, events.Policy{}); err != nil {
		log.Fatal(err)
	}
	r, err := conn.Submit(ctx, events.Submit{
		To: "chat:42", Body: events.Body{Text: "anybody there?"}, IdempotencyKey: "message 1 of chat 42",
	})
	if err != nil {
		log.Fatal(err)
	}
	r, err = conn.WaitReceipt(ctx, r.ID, func(r events.Receipt) bool { return r.State == events.StateSettled })
	if err != nil {
		log.Fatal(err)
	}
	turn, err := conn.Turn(ctx, r.Turn)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Outcome, turn.Reply)

	_, err = conn.Submit(ctx, events.Submit{To: "chat:43", Body: events.Body{Text: "and there?"}})
	fmt.Println(errors.Is(err, events.ErrOf(events.CodeUnknownSession)))
	// Output:
	// completed anybody there?
	// true
}

// ExampleConn_Follow reads a session's record from the beginning and goes on live until
// its turn has ended.
func ExampleConn_Follow() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	bus, stop := exampleBus(ctx)
	defer stop()
	defer serveEcho(bus)()

	conn := bus("watcher", events.RoleGateway)
	defer conn.Close()
	session, err := conn.Register(ctx, events.Names{GatewaySessionKey: "chat:42"}, events.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := conn.Submit(ctx, events.Submit{To: "chat:42", Body: events.Body{Text: "hello"}}); err != nil {
		log.Fatal(err)
	}
	for rec, err := range conn.Follow(ctx, client.FollowConfig{Scopes: []events.Scope{session.Session.Scope()}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rec.Ordinal, rec.Type.Short())
		if rec.Type == events.TypeTurnEnded {
			break
		}
	}
	// Output:
	// 1 session.registered
	// 2 continuation.queued
	// 3 session.attached
	// 4 continuation.offered
	// 5 session.started
	// 6 turn.started
	// 7 turn.ended
}

// exampleBus starts a bus in this process. The function connects a principal to it; with
// a bus elsewhere that is
//
//	creds, err := client.ReadCredentials("chat.yaml")
//	conn, err := client.Connect(ctx, client.Config{URL: "nats://127.0.0.1:4222", Credentials: creds})
func exampleBus(ctx context.Context) (connect func(events.PrincipalName, events.Role) *client.Conn, stop func()) {
	dir, err := os.MkdirTemp("", "keryx-example-")
	if err != nil {
		log.Fatal(err)
	}
	n, err := node.Start(ctx, node.Config{Dir: dir, Logger: quiet()})
	if err != nil {
		log.Fatal(err)
	}
	connect = func(name events.PrincipalName, role events.Role) *client.Conn {
		c, err := n.Connect(ctx, events.Principal{Profile: "default", Name: name, Role: role})
		if err != nil {
			log.Fatal(err)
		}
		return c
	}
	return connect, func() {
		if err := errors.Join(n.Stop(context.WithoutCancel(ctx)), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

// serveEcho runs a host that answers each message with its own text.
func serveEcho(connect func(events.PrincipalName, events.Role) *client.Conn) (stop func()) {
	conn := connect("echo", events.RoleHost)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- conn.ServeHost(ctx, client.HostConfig{Handle: echo}) }()
	return func() {
		cancel()
		if err := errors.Join(<-served, conn.Close()); err != nil {
			log.Fatal(err)
		}
	}
}

// say sends a message into a session of its own and returns the reply.
func say(ctx context.Context, connect func(events.PrincipalName, events.Role) *client.Conn, text string) string {
	conn := connect("chat", events.RoleGateway)
	defer conn.Close()
	if _, err := conn.Register(ctx, events.Names{GatewaySessionKey: "chat:1"}, events.Policy{}); err != nil {
		log.Fatal(err)
	}
	r, err := conn.Submit(ctx, events.Submit{To: "chat:1", Body: events.Body{Text: text}})
	if err != nil {
		log.Fatal(err)
	}
	r, err = conn.WaitReceipt(ctx, r.ID, func(r events.Receipt) bool { return r.State == events.StateSettled })
	if err != nil {
		log.Fatal(err)
	}
	turn, err := conn.Turn(ctx, r.Turn)
	if err != nil {
		log.Fatal(err)
	}
	return turn.Reply
}
