// Package benchreport makes a report of benchmarks that compare two ways to do the same.
//
// [Parse] reads what `go test -bench` prints, [Report] pairs the results by [Row] and writes
// Markdown. A row whose benchmarks did not run is told as missing, never left out.
package benchreport
