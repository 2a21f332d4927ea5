package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"keryx/internal/process"
)

var helpers = map[string]func() error{
	"process-1": beProcessOne,
	"doomed":    beDoomed,
}

// reapReport is what process 1 tells of itself.
type reapReport struct {
	Sevens, OthersSevens, Zombies int
	Failed                        []string
}

// beProcessOne runs commands that leave orphans, and some by os/exec beside them, and
// counts what it did not reap.
func beProcessOne() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("process %d, not 1", os.Getpid())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var reaping sync.WaitGroup
	reaping.Go(func() { _ = process.Reap(ctx) })
	var sevens, others atomic.Int64
	var report reapReport
	var mu sync.Mutex
	var work sync.WaitGroup
	for worker := range 4 {
		work.Go(func() {
			for i := range 75 {
				p, err := process.Start(ctx, process.Spec{
					Argv: sh("(sleep 0.1 &) ; exit 7"), Env: env(), Leave: i%2 == worker%2,
				})
				if err == nil && p.Wait().Code == 7 {
					sevens.Add(1)
				} else if err != nil {
					mu.Lock()
					report.Failed = append(report.Failed, err.Error())
					mu.Unlock()
				}
				var exit *exec.ExitError
				if errors.As(exec.Command("/bin/sh", "-c", "exit 7").Run(), &exit) && exit.ExitCode() == 7 {
					others.Add(1)
				}
			}
		})
	}
	work.Wait()
	report.Sevens, report.OthersSevens = int(sevens.Load()), int(others.Load())
	report.Zombies = zombiesWithin(2 * time.Second)
	cancel()
	reaping.Wait()
	return json.NewEncoder(os.Stdout).Encode(report)
}

// zombiesWithin counts zombies, until there are none or the time is over.
func zombiesWithin(d time.Duration) (n int) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(d); ; <-tick.C {
		n = 0
		dirs, _ := os.ReadDir("/proc")
		for _, dir := range dirs {
			b, err := os.ReadFile("/proc/" + dir.Name() + "/stat")
			if err == nil && strings.Contains(string(b), ") Z ") {
				n++
			}
		}
		if n == 0 || time.Now().After(until) {
			return n
		}
	}
}

// beDoomed runs a tree in a group and waits to be killed.
func beDoomed() error {
	g, err := process.OpenGroups(os.Getenv("OWNER"), "doomed")
	if err != nil {
		return err
	}
	_, err = process.Start(context.Background(), process.Spec{
		Argv: sh("setsid sleep 300 & echo $!; env -i setsid sleep 300 & echo $!; echo ready; wait"),
		Env:  env(), Groups: g, Group: "session.exec",
		Output: func(_ process.Stream, b []byte) { _, _ = os.Stdout.Write(b) },
	})
	if err != nil {
		return err
	}
	select {}
}
