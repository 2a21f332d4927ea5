package execution_test

import (
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"
)

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitFile polls until a file is there.
func awaitFile(t *testing.T, file string) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer late.Stop()
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("%s never came", file)
		}
	}
}

func portOf(t *testing.T, addr string) int {
	t.Helper()
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// awaitDisconnect polls until the bus's connection is gone.
func awaitDisconnect(t *testing.T, b *memoryBus) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer late.Stop()
	for b.nc.IsConnected() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatal("still connected")
		}
	}
}
