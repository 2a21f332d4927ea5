package doctor

import "keryx/internal/storefile"

// Severity of a finding.
type Severity string

// The severities, in rising order.
const (
	// Fine is what was looked at and is as it has to be.
	Fine Severity = "ok"
	// Note is what one may want to know.
	Note Severity = "note"
	// Warning is what works now and should be put right.
	Warning Severity = "warning"
	// Fault is what keeps the bus from starting, or facts from being read.
	Fault Severity = "error"
)

func (s Severity) rank() int {
	switch s {
	case Fine:
		return 0
	case Note:
		return 1
	case Warning:
		return 2
	}
	return 3
}

// Finding is the result of a check.
type Finding struct {
	// Check names what was looked at, in one word.
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	// Do says what to do; empty if nothing.
	Do string `json:"do,omitempty"`
	// Repair says what [Repair] does about it; empty if nothing.
	Repair string `json:"repair,omitempty"`

	repair func() error
}

// Report is what was found, in the order of the checks.
type Report struct {
	Dir string `json:"dir"`
	// Running reports whether a bus has the directory, so that its store was not read.
	Running  bool               `json:"running"`
	Findings []Finding          `json:"findings"`
	Streams  []storefile.Report `json:"streams,omitempty"`
}

// Worst returns the highest severity of the report.
func (r Report) Worst() Severity {
	worst := Fine
	for _, f := range r.Findings {
		if f.Severity.rank() > worst.rank() {
			worst = f.Severity
		}
	}
	return worst
}

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }

// Repaired is a repair that was done, or would be.
type Repaired struct {
	Check string `json:"check"`
	What  string `json:"what"`
}

// Repair does what the findings name as repairs, or only says so.
func (r Report) Repair(dryRun bool) ([]Repaired, error) {
	var done []Repaired
	for _, f := range r.Findings {
		if f.repair == nil {
			continue
		}
		if !dryRun {
			if err := f.repair(); err != nil {
				return done, err
			}
		}
		done = append(done, Repaired{f.Check, f.Repair})
	}
	return done, nil
}
