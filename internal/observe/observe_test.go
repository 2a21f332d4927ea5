package observe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"keryx/internal/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatalf("get %s: %v", url, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatalf("read %s: %v", url, err)
	}
	return resp.StatusCode, string(body)
}

func TestReadyzSaysWhyNotAndHealthzDoesNotCare(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	run := filepath.Join(t.TempDir(), "http")
	s, err := observe.Serve(t.Context(), observe.HTTPConfig{Addr: "127.0.0.1:0", RunFile: run, Ready: func() error {
		if !up.Load() {
			return errors.New("no active authority")
		}
		return nil
	}})
	if err != nil {
		t.Fatalf("serve: %v", err)
	}
	for _, c := range []struct {
		path string
		up   bool
		code int
		body string
	}{
		{"/healthz", false, 200, "ok\n"},
		{"/readyz", false, 503, "no active authority\n"},
		{"/readyz", true, 200, "ok\n"},
		{"/", true, 404, "404 page not found\n"},
	} {
		up.Store(c.up)
		if code, body := get(t, s.URL()+c.path); code != c.code || body != c.body {
			t.Errorf("%s when up is %v: %d %q, want %d %q", c.path, c.up, code, body, c.code, c.body)
		}
	}
	if b, err := os.ReadFile(run); err != nil || string(b) != s.URL()+"\n" {
		t.Errorf("run file: %q, %v", b, err)
	}
	if err := errors.Join(s.Stop(t.Context()), s.Stop(t.Context())); err != nil {
		t.Errorf("stop twice: %v", err)
	}
	if _, err := os.Stat(run); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run file is left: %v", err)
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "example.org:80", "[::]:0"} {
		if _, err := observe.Serve(t.Context(), observe.HTTPConfig{Addr: addr}); !errors.Is(err, observe.ErrNotLoopback) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := observe.Serve(t.Context(), observe.HTTPConfig{Addr: "nonsense"}); err == nil {
		t.Error("an address without a port is taken")
	}
}

func TestTheModuleServesWhileTheAppRuns(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "http")
	app := fxtest.New(t, fx.Supply(observe.HTTPConfig{Addr: "127.0.0.1:0", RunFile: run}), observe.Module, fx.NopLogger)
	app.RequireStart()
	url, err := os.ReadFile(run)
	if err != nil {
		t.Fatalf("read run file: %v", err)
	}
	if code, _ := get(t, strings.TrimSpace(string(url))+"/readyz"); code != 200 {
		t.Errorf("readyz: %d", code)
	}
	app.RequireStop()
	off := fxtest.New(t, fx.Supply(observe.HTTPConfig{RunFile: run}), observe.Module, fx.NopLogger)
	off.RequireStart().RequireStop()
	if _, err := os.Stat(run); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("served without an address: %v", err)
	}
}

func TestLogsHaveALevelAndAFormat(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log, err := observe.NewLogger(&b, observe.FormatJSON, "warn")
	if err != nil {
		t.Fatalf("new logger: %v", err)
	}
	log.Info("hidden")
	log.Warn("shown", "n", 1)
	var line struct {
		Msg string
		N   int
	}
	if err := json.Unmarshal(b.Bytes(), &line); err != nil || line.Msg != "shown" || line.N != 1 {
		t.Errorf("log is %q (%v)", b.String(), err)
	}
	for _, c := range [][2]string{{"xml", "info"}, {"text", "loud"}} {
		if _, err := observe.NewLogger(&b, observe.Format(c[0]), c[1]); !errors.Is(err, observe.ErrBadFormat) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
