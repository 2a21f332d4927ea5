package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"keryx/schemas/page"
)

// fieldsFile is the name of the page that fieldsPage makes, in the folder of the documents.
const fieldsFile = "fields.md"

const fieldsHead = "# Fields\n\n" +
	"Every field of every event, command, answer and order, as the schemas have it. Made by `go generate ./schemas`;\n" +
	"do not edit. `bus schema show TYPE` shows the same; [events.md](events.md) says who sends what.\n\n" +
	"A name within `a.b` is of the object `a`, `a[]` of each entry of a list, `a.*` of each value of a map. A field with\n" +
	"`?` may be absent.\n"

// fieldsPage returns a section for each schema in dir, in the order of their names.
func fieldsPage(dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list schemas: %w", err)
	}
	var b strings.Builder
	b.WriteString(fieldsHead)
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("make page: %w", err)
		}
		p, err := page.Of(body)
		if err != nil {
			return nil, fmt.Errorf("make page of %s: %w", file, err)
		}
		section(&b, p)
	}
	return []byte(b.String()), nil
}

func section(b *strings.Builder, p page.Page) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", p.Name, cell(p.Words))
	if len(p.Fields) == 0 {
		b.WriteString("\nIt has no fields.\n")
		return
	}
	b.WriteString("\n| field | type | holds | meaning |\n|---|---|---|---|\n")
	for _, f := range p.Fields {
		name := f.Name
		if !f.Required {
			name += "?"
		}
		bounds := f.Bounds
		if bounds != "" {
			bounds = "`" + strings.ReplaceAll(bounds, "|", `\|`) + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, f.Type, bounds, cell(f.Words))
	}
}

func cell(s string) string { return strings.NewReplacer("|", `\|`, "<", `\<`, "\n", " ").Replace(s) }
