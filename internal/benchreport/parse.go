package benchreport

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Result is the median of the runs of one benchmark, by unit: ns/op, MB/s, or its own.
type Result map[string]float64

// Parse reads the output of `go test -bench`, by the names of the benchmarks without the
// number of processors. Of several runs it keeps the fastest by ns/op: what else happens on
// a machine only ever makes a run slower.
func Parse(r io.Reader) (map[string]Result, error) {
	out := make(map[string]Result)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		if _, err := strconv.Atoi(f[1]); err != nil {
			continue // a line of a benchmark's log
		}
		res, err := values(f[2:])
		if err != nil {
			return nil, fmt.Errorf("read result %q: %w", lines.Text(), err)
		}
		name := nameOf(f[0])
		if old, ok := out[name]; !ok || res["ns/op"] < old["ns/op"] {
			out[name] = res
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	return out, nil
}

// values reads pairs of a number and its unit.
func values(f []string) (Result, error) {
	res := make(Result)
	for ; len(f) >= 2; f = f[2:] {
		v, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			return nil, err
		}
		res[f[1]] = v
	}
	return res, nil
}

// nameOf cuts the number of processors.
func nameOf(s string) string {
	if i := strings.LastIndexByte(s, '-'); i > 0 {
		if _, err := strconv.Atoi(s[i+1:]); err == nil {
			return s[:i]
		}
	}
	return s
}
