// Command gen writes the JSON Schemas of package events, types and fields from the structs
// by reflection, words from their doc comments, and the AsyncAPI document of the subjects.
// Run it with go generate.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"keryx/events"
)

func main() {
	source := flag.String("source", "../events", "directory of package events")
	out := flag.String("out", ".", "directory to write schemas to")
	docs := flag.String("docs", "../docs", "directory to write the page of fields to")
	flag.Parse()
	if err := run(*source, *out, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(source, out, docs string) error {
	words, err := readWords(source)
	if err != nil {
		return err
	}
	if err := writeSchemas(words, out); err != nil {
		return err
	}
	doc, err := builder{words: words}.asyncAPI()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, asyncAPIFile), doc, 0o644); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	fields, err := fieldsPage(out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(docs, fieldsFile), fields, 0o644)
}

func writeSchemas(words words, out string) error {
	for _, e := range events.Catalogue() {
		b := builder{words: words, closed: e.Class == events.ClassCommand}
		if err := write(out, string(e.Type), b.document(string(e.Type), reflect.TypeOf(e.New()).Elem())); err != nil {
			return err
		}
		if e.Answer == nil {
			continue
		}
		b.closed = false
		name := string(e.Type) + ".answer"
		if err := write(out, name, b.document(name, reflect.TypeOf(e.Answer()).Elem())); err != nil {
			return err
		}
	}
	for _, f := range events.Formats() {
		b := builder{words: words, closed: true}
		if err := write(out, string(f.Type), b.document(string(f.Type), reflect.TypeOf(f.New()).Elem())); err != nil {
			return err
		}
	}
	for _, o := range events.Orders() {
		b := builder{words: words}
		if err := write(out, string(o.Type), b.document(string(o.Type), reflect.TypeOf(o.New()).Elem())); err != nil {
			return err
		}
	}
	return nil
}

func write(dir, name string, doc any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(dir, name+".json"), b.Bytes(), 0o644)
}
