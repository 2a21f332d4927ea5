package benchreport

import (
	"fmt"
	"io"
	"time"
)

// Row compares a benchmark with another that does the same without Keryx.
type Row struct {
	What string // e.g. "pty bulk"
	// Ours and Plain are names of benchmarks, and Unit what of them is compared.
	Ours, Plain, Unit string
	// Bar says in words what is to hold, and Holds whether it does.
	Bar   string
	Holds func(ours, plain float64) bool
}

// Report writes a page of rows. machine and at head it.
func Report(w io.Writer, machine string, at time.Time, rows []Row, results map[string]Result) error {
	p := &page{w: w}
	p.line("# Benchmarks\n\nMade by `make bench` on %s; %s.\nRatios matter, absolute numbers do not.\n", at.UTC().Format("2006-01-02 15:04 MST"), machine)
	p.line("| what | unit | here | plain | ratio | bar | holds |\n|---|---|---|---|---|---|---|")
	for _, r := range rows {
		p.row(r, results)
	}
	return p.err
}

type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *page) row(r Row, results map[string]Result) {
	ours, ok := results[r.Ours][r.Unit]
	plain, okPlain := results[r.Plain][r.Unit]
	if !ok || !okPlain {
		p.line("| %s | %s | missing | missing | | %s | not measured |", r.What, r.Unit, r.Bar)
		return
	}
	holds := "no"
	if r.Holds(ours, plain) {
		holds = "yes"
	}
	p.line("| %s | %s | %.4g | %.4g | %.2f | %s | %s |", r.What, r.Unit, ours, plain, ours/plain, r.Bar, holds)
}
