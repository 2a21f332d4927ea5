package broker

import (
	"context"
	"fmt"
	"os"
)

// Hold takes a bus directory for a command that works on its files, or returns
// [*HeldError]. The returned function gives it free.
func Hold(ctx context.Context, dir string) (func() error, error) {
	if _, err := os.Stat(dir); err != nil { // holding creates nothing
		return nil, fmt.Errorf("look at bus directory: %w", err)
	}
	l, err := lockStore(ctx, dir)
	if err != nil {
		return nil, err
	}
	return l.release, nil
}
