// Command make reads what `go test -bench` prints and writes docs/bench.md on its output.
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"keryx/internal/benchreport"
)

// rows are what is compared; the bars are those of the design, section 11.
func rows() []benchreport.Row {
	const ms = 1e6
	return append(growth(), []benchreport.Row{
		{
			What: "exec: a request to its first output byte, p50", Unit: "p50-ns",
			Ours: "BenchmarkExecToFirstByte/bus", Plain: "BenchmarkExecToFirstByte/fork_and_read",
			Bar: "plain + 3 ms", Holds: func(ours, plain float64) bool { return ours <= plain+3*ms },
		},
		{
			What: "terminal: bulk output as the executor reads it", Unit: "MB/s",
			Ours: "BenchmarkTerminalBulk", Plain: "BenchmarkTerminalDirect",
			Bar: "0.7 of plain", Holds: func(ours, plain float64) bool { return ours >= 0.7*plain },
		},
		{
			What: "terminal: bulk output as a client sees it", Unit: "MB/s",
			Ours: "BenchmarkTerminalAtClient", Plain: "BenchmarkTerminalDirect",
			Bar: "0.7 of plain", Holds: func(ours, plain float64) bool { return ours >= 0.7*plain },
		},
		{
			What: "terminal: a key to its echo, p50", Unit: "p50-ns",
			Ours: "BenchmarkKeyToEcho/bus", Plain: "BenchmarkKeyToEcho/terminal",
			Bar: "plain + 5 ms", Holds: func(ours, plain float64) bool { return ours <= plain+5*ms },
		},
		{
			What: "terminal: a key to its echo, p99", Unit: "p99-ns",
			Ours: "BenchmarkKeyToEcho/bus", Plain: "BenchmarkKeyToEcho/terminal",
			Bar: "plain + 50 ms", Holds: func(ours, plain float64) bool { return ours <= plain+50*ms },
		},
	}...)
}

// growth are the rows about many sessions and events.
func growth() []benchreport.Row {
	twice := func(ours, plain float64) bool { return ours <= 2*plain }
	return []benchreport.Row{
		{
			What: "a command to its event at a live follower, p50", Unit: "p50-ns",
			Ours: "BenchmarkCommandToFollower/bus", Plain: "BenchmarkCommandToFollower/raw", Bar: "2 x plain", Holds: twice,
		},
		{
			What: "the same with 10,000 more followers", Unit: "p50-ns",
			Ours: "BenchmarkCommandToFollower/bus_with_10000_followers", Plain: "BenchmarkCommandToFollower/raw", Bar: "2 x plain", Holds: twice,
		},
		appends(1, 0.5), appends(16, 0.7), appends(256, 3),
		{
			What: "replay of 1,000 events, p50", Unit: "p50-ns", Ours: "BenchmarkPage/page", Plain: "BenchmarkPage/raw",
			Bar: "1.5 x plain", Holds: func(ours, plain float64) bool { return ours <= 1.5*plain },
		},
		{
			What: "start of 40,000 events in 2,000 sessions: from the index, beside the whole log", Unit: "start-ms",
			Ours: "BenchmarkStart/index", Plain: "BenchmarkStart/whole_log", Bar: "less than plain",
			Holds: func(ours, plain float64) bool { return ours < plain },
		},
		{
			What: "start: beside an empty store", Unit: "start-ms", Ours: "BenchmarkStart/index", Plain: "BenchmarkStart/empty",
			Bar: "an empty one in 150 ms", Holds: func(_, plain float64) bool { return plain <= 150 },
		},
		{
			What: "memory with 10,000 idle sessions, beside none", Unit: "MiB", Ours: "BenchmarkIdleSessions/10000",
			Plain: "BenchmarkIdleSessions/0", Bar: "200 MB", Holds: func(ours, _ float64) bool { return ours <= 200 },
		},
	}
}

// appends compares commands of so many sessions at once with raw publishes.
func appends(sessions int, bar float64) benchreport.Row {
	return benchreport.Row{
		What: fmt.Sprintf("appends, %d sessions at once", sessions), Unit: "appends/s",
		Ours: fmt.Sprintf("BenchmarkAppends/%d_sessions", sessions), Plain: fmt.Sprintf("BenchmarkAppends/%d_raw", sessions),
		Bar: fmt.Sprintf("%g of plain", bar), Holds: func(ours, plain float64) bool { return ours >= bar*plain },
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench report:", err)
		os.Exit(1)
	}
}

func run() error {
	results, err := benchreport.Parse(os.Stdin)
	if err != nil {
		return err
	}
	machine := fmt.Sprintf("%s/%s, %d processors, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	return benchreport.Report(os.Stdout, machine, time.Now(), rows(), results)
}
