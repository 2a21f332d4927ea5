// Command bus is the bus itself and the operator's tool: it serves, holds a
// conversation, and shows and changes sessions.
package main

import (
	"context"
	"os"

	"keryx/internal/cli"
)

func main() { os.Exit(cli.Main(context.Background(), newRoot())) }
