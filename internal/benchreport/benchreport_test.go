package benchreport_test

import (
	"strings"
	"testing"
	"time"

	"keryx/internal/benchreport"
)

func TestResultsArePairedByRowAndWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	results, err := benchreport.Parse(strings.NewReader(`goos: linux
BenchmarkOurs/a_b-2   	  100	  3000 ns/op	 50.0 MB/s
BenchmarkOurs/a_b-2   	  100	  2000 ns/op	 75.0 MB/s
BenchmarkPlain-2   	  100	  1000 ns/op	 150 MB/s
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	at := func(ours, plain float64) bool { return ours >= 0.7*plain }
	var b strings.Builder
	err = benchreport.Report(&b, "a machine", time.Unix(0, 0), []benchreport.Row{
		{What: "bulk", Ours: "BenchmarkOurs/a_b", Plain: "BenchmarkPlain", Unit: "MB/s", Bar: "0.7", Holds: at},
		{What: "none", Ours: "BenchmarkNone", Plain: "BenchmarkPlain", Unit: "MB/s", Bar: "0.7", Holds: at},
	}, results)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| bulk | MB/s | 75 | 150 | 0.50 | 0.7 | no |", "| none | MB/s | missing | missing | | 0.7 | not measured |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
	if _, err := benchreport.Parse(strings.NewReader("BenchmarkX 10 abc ns/op\n")); err == nil {
		t.Error("a number that is none was taken")
	}
}
