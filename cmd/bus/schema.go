package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/schemacheck"
	"keryx/internal/termtext"
	"keryx/schemas"
	"keryx/schemas/page"
)

func newSchema(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "The types of events and commands, and whether data fit them",
		Long: `The types of events and commands, and whether data fit them. All of it is part of the
program: no bus is needed, none is asked.`,
	}
	return cli.Group(cmd, newSchemaList(g), newSchemaShow(g), newSchemaCheck(g))
}

// The documents that describe the whole, by the names that 'schema show' takes.
const (
	docAsyncAPI = "asyncapi"
	docOpenAPI  = "openapi"
)

func newSchemaList(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "list [GLOB]",
		Short: "List the types, and the hash of the whole set",
		Long: `List the types, and the hash of the whole set: two programs with the same hash mean the
same by each type.`,
		Example: `  bus schema list
  bus schema list 'keryx.turn.*'
  bus schema list --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			glob := "*"
			if len(args) > 0 {
				glob = args[0]
			}
			lines, err := schemaLines(glob)
			if err != nil {
				return err
			}
			return g.printSchemas(cmd.OutOrStdout(), lines)
		},
	}
}

// schemaLine is one type in the list.
type schemaLine struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	Roles []string `json:"roles,omitempty"`
	Words string   `json:"description"`
	ID    string   `json:"id"`
}

func (g *global) printSchemas(w io.Writer, lines []schemaLine) error {
	if g.json {
		for _, l := range lines {
			if err := cli.PrintJSON(w, l); err != nil {
				return err
			}
		}
		return nil
	}
	t := cli.NewTable(w, "NAME", "KIND", "SENT BY", "MEANING")
	for _, l := range lines {
		t.Row(l.Name, l.Kind, strings.Join(l.Roles, ","), l.Words)
	}
	if err := t.Close(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d of %d types; the set is %s\n", len(lines), len(schemas.Names()), schemas.SetHash())
	return err
}

func newSchemaShow(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "show TYPE|asyncapi|openapi",
		Short: "Show the fields of a type, or the description of the bus or of the HTTP API",
		Long: `Show the fields of a type; with --json its JSON Schema (2020-12). A type may be given
without "keryx." and version: turn.ended, cmd.session.register.

asyncapi is the AsyncAPI 3.0 document of all subjects of the bus, openapi the OpenAPI 3.1
document of the HTTP API. Both are YAML and refer to the schemas of the types.`,
		Example: `  bus schema show turn.ended
  bus schema show keryx.cmd.continuation.submit.v1 --json
  bus schema show asyncapi > asyncapi.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: schemaArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case docAsyncAPI, docOpenAPI:
				return g.printDocument(cmd.OutOrStdout(), args[0])
			}
			return g.printSchema(cmd.OutOrStdout(), args[0])
		},
	}
}

func (g *global) printDocument(w io.Writer, name string) error {
	if g.json {
		return cli.Usagef("%s is a document in YAML; --json does not go with it", name)
	}
	doc := schemas.OpenAPI
	if name == docAsyncAPI {
		doc = schemas.AsyncAPI
	}
	_, err := w.Write(doc)
	return err
}

func (g *global) printSchema(w io.Writer, name string) error {
	name, body, err := findSchema(name)
	if err != nil {
		return err
	}
	if g.json {
		_, err := w.Write(body)
		return err
	}
	p, err := page.Of(body)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s\n\n%s\n", name, termtext.Visible(p.Words)); err != nil {
		return err
	}
	if len(p.Fields) == 0 {
		_, err := fmt.Fprintln(w, "\nIt has no fields.")
		return err
	}
	_, _ = fmt.Fprintln(w) // what goes wrong is reported below
	t := cli.NewTable(w, "FIELD", "TYPE", "HOLDS", "MEANING")
	for _, f := range p.Fields {
		if !f.Required {
			f.Name += "?"
		}
		t.Row(f.Name, f.Type, f.Bounds, f.Words)
	}
	return t.Close()
}

func newSchemaCheck(g *global) *cobra.Command {
	var typ string
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check events and commands in files against their schemas",
		Long: `Check events and commands in files against their schemas. A file holds CloudEvents in
JSON: one, a list, or one a line, as 'bus replay --json' writes them; - is standard input.
With --type it holds bare data of that type.

What does not fit is printed with file, line and path, one line each, and the exit code
is 1.`,
		Example: `  bus replay cli:local --json | bus schema check -
  bus schema check events.jsonl commands.json
  bus schema check --type cmd.continuation.submit submit.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if typ != "" {
				name, _, err := findSchema(typ)
				if err != nil {
					return err
				}
				typ = name
			}
			return g.checkFiles(cmd, typ, args)
		},
	}
	cmd.Flags().StringVar(&typ, "type", "", "the files hold bare data of this type")
	complete(cmd, "type", schemaArg)
	return cmd
}

func (g *global) checkFiles(cmd *cobra.Command, typ string, files []string) error {
	k := schemacheck.Checker{Type: typ}
	for _, file := range files {
		var failed error
		k.Report = func(f schemacheck.Fault) {
			if failed == nil {
				failed = g.printFault(cmd.OutOrStdout(), file, f)
			}
		}
		err := checkFile(cmd, &k, file)
		switch {
		case failed != nil:
			return failed
		case errors.Is(err, schemacheck.ErrEmpty), errors.Is(err, schemacheck.ErrTooLong):
			return events.Errorf(events.CodeInvalid, "check %s: %v", file, err)
		case err != nil:
			return fmt.Errorf("check %s: %w", file, err)
		}
	}
	if k.Faulty > 0 {
		return events.Errorf(events.CodeInvalid, "%d of %d do not fit their schemas", k.Faulty, k.Checked)
	}
	if g.json {
		return nil
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d checked, all fit their schemas\n", k.Checked)
	return err
}

func checkFile(cmd *cobra.Command, k *schemacheck.Checker, file string) error {
	if file == "-" {
		return k.Check(cmd.InOrStdin())
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	return k.Check(f)
}

func (g *global) printFault(w io.Writer, file string, f schemacheck.Fault) error {
	if g.json {
		return cli.PrintJSON(w, struct {
			File string `json:"file"`
			schemacheck.Fault
		}{file, f})
	}
	text := fmt.Sprintf("%s:%d: ", file, f.Line)
	if f.Entry > 0 {
		text += fmt.Sprintf("entry %d: ", f.Entry)
	}
	for _, part := range []string{f.Type, f.Path} {
		if part != "" {
			text += part + ": "
		}
	}
	_, err := fmt.Fprintln(w, termtext.Visible(text+f.Message))
	return err
}
