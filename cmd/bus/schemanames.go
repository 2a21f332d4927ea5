package main

import (
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"keryx/events"
	"keryx/internal/cli"
	"keryx/schemas"
	"keryx/schemas/page"
)

// schemaLines lists the types whose full or short name matches a glob.
func schemaLines(glob string) ([]schemaLine, error) {
	if _, err := path.Match(glob, ""); err != nil {
		return nil, cli.Usagef("glob %q: %v", glob, err)
	}
	var out []schemaLine
	for _, name := range schemas.Names() {
		full, _ := path.Match(glob, name)
		short, _ := path.Match(glob, shortName(name))
		if !full && !short {
			continue
		}
		body, err := schemas.FS.ReadFile(name + ".json")
		if err != nil {
			return nil, err
		}
		p, err := page.Of(body)
		if err != nil {
			return nil, err
		}
		l := schemaLine{Name: name, Words: p.Words, ID: events.Type(name).Schema()}
		l.Kind, l.Roles = kindOf(name)
		out = append(out, l)
	}
	if len(out) == 0 {
		return nil, events.Errorf(events.CodeInvalid, "no type matches %q; 'bus schema list' has all", glob)
	}
	return out, nil
}

// kindOf says what a schema describes, and who sends it.
func kindOf(name string) (kind string, roles []string) {
	switch {
	case strings.HasSuffix(name, ".answer"):
		return "answer", []string{"bus"}
	case strings.HasPrefix(name, "keryx.order."):
		return "order", []string{"bus"}
	}
	e, _ := events.Find(events.Type(name))
	if e.Class != events.ClassCommand {
		return string(events.ClassEvent), []string{"bus"}
	}
	for _, r := range e.Roles {
		roles = append(roles, string(r))
	}
	slices.Sort(roles)
	return string(e.Class), roles
}

// shortName is a schema's name without "keryx." and version: turn.ended,
// cmd.session.register, cmd.session.register.answer, order.offer.
func shortName(name string) string {
	name, answer := strings.CutSuffix(strings.TrimPrefix(name, "keryx."), ".answer")
	if i := strings.LastIndex(name, ".v"); i >= 0 {
		name = name[:i]
	}
	if answer {
		name += ".answer"
	}
	return name
}

// findSchema finds a schema by its name or short name.
func findSchema(given string) (name string, body []byte, err error) {
	for _, name := range schemas.Names() {
		if given != name && given != shortName(name) {
			continue
		}
		body, err := schemas.FS.ReadFile(name + ".json")
		return name, body, err
	}
	return "", nil, events.Errorf(events.CodeInvalid, "there is no type %q; 'bus schema list' has all", given)
}

// schemaArg completes a short name.
func schemaArg(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if len(args) > 0 && cmd.Name() == "show" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range append(schemas.Names(), docAsyncAPI, docOpenAPI) {
		for _, form := range []string{shortName(name), name} {
			if strings.HasPrefix(form, prefix) {
				out = append(out, form)
				break
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
