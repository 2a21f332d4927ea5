// Command gateway-bridge brings messages into sessions and carries replies out.
package main

import (
	"context"
	"os"

	"keryx/cmd/internal/bridgecmd"
	"keryx/internal/cli"
)

func main() { os.Exit(cli.Main(context.Background(), bridgecmd.New())) }
