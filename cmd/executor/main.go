// Command executor runs commands of sessions in a target of this machine.
package main

import (
	"context"
	"os"

	"keryx/cmd/internal/executorcmd"
	"keryx/internal/cli"
)

func main() { os.Exit(cli.Main(context.Background(), executorcmd.New())) }
