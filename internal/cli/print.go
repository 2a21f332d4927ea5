package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"keryx/internal/termtext"
)

// PrintJSON writes v as one line of JSON.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// Table prints aligned columns. Cells may hold anything: they are made visible.
type Table struct{ w *tabwriter.Writer }

// NewTable begins a table with its headings.
func NewTable(w io.Writer, headings ...string) *Table {
	t := &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.Row(headings...)
	return t
}

// Row adds a row. What goes wrong is reported by Close.
func (t *Table) Row(cells ...string) {
	for i, c := range cells {
		cells[i] = termtext.Visible(c)
		if c == "" {
			cells[i] = "-"
		}
	}
	_, _ = io.WriteString(t.w, strings.Join(cells, "\t")+"\n") // kept until Flush
}

// Close writes the table.
func (t *Table) Close() error {
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colors reports whether colors may be written to a stream: to terminals that can show
// them, unless NO_COLOR is set.
func Colors(stream any) bool {
	return IsTerminal(stream) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Width returns the width of a terminal in cells; 0 for other streams.
func Width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Size returns the size of a terminal; ok is false if the stream is none.
func Size(stream any) (rows, cols int, ok bool) {
	f, isFile := stream.(*os.File)
	if !isFile {
		return 0, 0, false
	}
	cols, rows, err := term.GetSize(int(f.Fd()))
	return rows, cols, err == nil && rows > 0 && cols > 0
}
