package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"keryx/cmd/internal/bridgecmd"
	"keryx/cmd/internal/executorcmd"
	"keryx/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"bus":            main,
		"executor":       func() { os.Exit(cli.Main(context.Background(), executorcmd.New())) },
		"gateway-bridge": func() { os.Exit(cli.Main(context.Background(), bridgecmd.New())) },
	})
}

// patience bounds each wait of a script.
const patience = 60 * time.Second

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ready":    ready,
			"waitgrep": waitGrep,
			"waitfail": waitFail,
			"fileenv":  fileEnv,
			"mode":     mode,
			"count":    count,
			"command":  command,
		},
	})
}

// until tries until ok returns nil.
func until(ts *testscript.TestScript, ok func() error) {
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("still after %s: %v", patience, err)
		}
	}
}

// ready DIR waits until the bus of a directory answers /readyz with 200.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ready DIR")
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	until(ts, func() error {
		url, err := os.ReadFile(ts.MkAbs(args[0] + "/run/http"))
		if err != nil {
			return err
		}
		resp, err := client.Get(strings.TrimSpace(string(url)) + "/readyz")
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
		}
		return errors.Join(err, resp.Body.Close())
	})
}

// waitgrep TEXT COMMAND... waits until the output of a command holds a text.
func waitGrep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitgrep TEXT COMMAND...")
	}
	until(ts, func() error {
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			return err
		}
		if out := ts.ReadFile("stdout"); !strings.Contains(out, args[0]) {
			return fmt.Errorf("no %q in %s", args[0], out)
		}
		return nil
	})
}

// waitfail COMMAND... waits until a command fails.
func waitFail(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: waitfail COMMAND...")
	}
	until(ts, func() error {
		if err := ts.Exec(args[0], args[1:]...); err != nil {
			return nil
		}
		return errors.New("the command succeeds")
	})
}

// fileenv NAME FILE [PREFIX] sets a variable to a file's text, without a prefix.
func fileEnv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fileenv NAME FILE [PREFIX]")
	}
	text := strings.TrimSpace(ts.ReadFile(args[1]))
	if len(args) > 2 {
		text = strings.TrimPrefix(text, args[2])
	}
	ts.Setenv(args[0], text)
}

// mode FILE PERM compares a file's permissions.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode FILE PERM")
	}
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

// count N TEXT counts how often a text stands in the last command's output.
func count(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: count N TEXT")
	}
	if n := strings.Count(ts.ReadFile("stdout"), args[1]); fmt.Sprint(n) != args[0] {
		ts.Fatalf("%q stands %d times, want %s", args[1], n, args[0])
	}
}
