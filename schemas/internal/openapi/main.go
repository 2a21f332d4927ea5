// Command openapi writes the OpenAPI document of the HTTP edge, made from its table of
// routes and the schemas. Run it with go generate.
package main

import (
	"flag"
	"fmt"
	"os"

	"keryx/internal/httpapi"
)

func main() {
	out := flag.String("out", "openapi.yaml", "file to write")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	doc, err := httpapi.Document()
	if err != nil {
		return err
	}
	return os.WriteFile(out, doc, 0o644)
}
