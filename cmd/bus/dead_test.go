package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"keryx/client"
	"keryx/events"
)

// command URLFILE CREDS TYPE DATA sends a command as any client could, also one that no
// program here would send. It fails when the command is refused.
func command(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: command URLFILE CREDS TYPE DATA")
	}
	creds, err := client.ReadCredentials(ts.MkAbs(args[1]))
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := client.Connect(ctx, client.Config{URL: strings.TrimSpace(ts.ReadFile(args[0])), Credentials: creds})
	ts.Check(err)
	_, err = c.Replay(ctx, events.Type(args[2]), json.RawMessage(args[3]))
	ts.Check(c.Close())
	if neg != (err != nil) {
		ts.Fatalf("the command of type %s: %v", args[2], err)
	}
}
