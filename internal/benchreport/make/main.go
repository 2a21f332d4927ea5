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
	return []benchreport.Row{
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
			What: "terminal: a key to its echo, p50", Unit: "p50-ns",
			Ours: "BenchmarkKeyToEcho/bus", Plain: "BenchmarkKeyToEcho/terminal",
			Bar: "plain + 5 ms", Holds: func(ours, plain float64) bool { return ours <= plain+5*ms },
		},
		{
			What: "terminal: a key to its echo, p99", Unit: "p99-ns",
			Ours: "BenchmarkKeyToEcho/bus", Plain: "BenchmarkKeyToEcho/terminal",
			Bar: "plain + 50 ms", Holds: func(ours, plain float64) bool { return ours <= plain+50*ms },
		},
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
