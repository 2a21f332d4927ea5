package exchange

import (
	"io"

	"keryx/internal/archive"
)

// Check reads a whole file and returns its header. What is wrong with it is
// *[archive.LineError].
func Check(file io.Reader) (archive.Header, error) {
	return archive.Read(file, func(archive.Item) error { return nil })
}
