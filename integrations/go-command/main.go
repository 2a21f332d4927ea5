// Command go-command carries out one slash command, /upper, for the chats of a profile.
//
//	bus user add upper --role gateway --out upper.creds
//	go run ./integrations/go-command --url nats://127.0.0.1:4222 --creds upper.creds
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"keryx/client"
	"keryx/events"
)

func main() {
	url := flag.String("url", "nats://127.0.0.1:4222", "address of the bus")
	creds := flag.String("creds", "", "credentials file of 'bus user add'")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *url, *creds); err != nil {
		fmt.Fprintln(os.Stderr, "go-command:", err)
		stop()
		os.Exit(1)
	}
}

func serve(ctx context.Context, url, file string) error {
	creds, err := client.ReadCredentials(file)
	if err != nil {
		return err
	}
	conn, err := client.Connect(ctx, client.Config{URL: url, Credentials: creds})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // always nil
	return conn.ServeCommand(ctx, client.Command{
		CommandSpec: events.CommandSpec{
			Name: "upper", Help: "say it louder", Surfaces: []string{"terminal", "pipe", events.SurfaceHTTP},
			Fields: []events.CommandField{events.FieldSurface},
		},
		Run: func(_ context.Context, i client.Invocation) (string, error) {
			surface, _ := i.Field(events.FieldSurface)
			return strings.ToUpper(i.RawArgs) + " (on " + surface + ")", nil
		},
	})
}
