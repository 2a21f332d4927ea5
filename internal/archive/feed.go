package archive

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Feeder takes a file in pieces as they come. Its zero value is ready; it is not safe for
// concurrent use.
type Feeder struct {
	Parser
	rest []byte
}

// Feed takes the next piece and calls fn with what each line in it says.
func (f *Feeder) Feed(piece []byte, fn func(Item) error) error {
	f.rest = append(f.rest, piece...)
	begin := 0
	for {
		n := bytes.IndexByte(f.rest[begin:], '\n')
		if n < 0 {
			break
		}
		item, err := f.Line(f.rest[begin : begin+n])
		if err == nil {
			err = fn(item)
		}
		if err != nil {
			return err
		}
		begin += n + 1
	}
	f.rest = append(f.rest[:0:0], f.rest[begin:]...)
	if len(f.rest) > MaxLine {
		_, err := f.Line(f.rest) // which says that it is too long
		return err
	}
	return nil
}

// Done returns nil once the whole file was taken.
func (f *Feeder) Done() error {
	if err := f.Parser.Done(); err != nil || len(f.rest) == 0 {
		return err
	}
	return &LineError{f.lines + 1, fmt.Errorf("%w: something stands behind the end", ErrForm)}
}

// Read reads a whole file and calls fn with what each line says. Errors are *[LineError],
// those of reading, and those of fn.
func Read(in io.Reader, fn func(Item) error) (Header, error) {
	var f Feeder
	buf := bufio.NewReaderSize(in, 1<<16)
	piece := make([]byte, 1<<16)
	for {
		n, err := buf.Read(piece)
		if n > 0 {
			if err := f.Feed(piece[:n], fn); err != nil {
				return f.Header(), err
			}
		}
		if err == io.EOF {
			return f.Header(), f.Done()
		}
		if err != nil {
			return f.Header(), fmt.Errorf("read export: %w", err)
		}
	}
}
