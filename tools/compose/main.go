// Command compose reads a compose file with the library of Docker Compose, which holds it to
// the compose specification, and prints what it means in JSON.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	options, err := cli.NewProjectOptions(files, cli.WithOsEnv, cli.WithName("keryx"), cli.WithResolvedPaths(true), cli.WithProfiles([]string{"*"}))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	out, err := project.MarshalJSON()
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	_, err = os.Stdout.Write(append(out, '\n'))
	return err
}
