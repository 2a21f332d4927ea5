package process

import (
	"fmt"
	"os"
)

// stdio are the ends of a process's standard streams.
type stdio struct {
	stdin    *os.File          // ours, to write to; nil for /dev/null
	out      [streams]*os.File // ours, to read from; a terminal's to write to, too
	children []*os.File        // the child's 0, 1 and 2
}

func openStdio(spec Spec) (*stdio, error) {
	s := &stdio{}
	if spec.Terminal != nil {
		ours, theirs, err := openTerminal(*spec.Terminal)
		if err != nil {
			return nil, err
		}
		s.out[Terminal], s.children = ours, []*os.File{theirs, theirs, theirs}
		return s, s.hand(theirs, spec.User)
	}
	if err := s.openStdin(spec.Stdin != nil); err != nil {
		return nil, err
	}
	for _, which := range Streams(false) {
		parent, child, err := pipe(true)
		if err != nil {
			s.close()
			return nil, err
		}
		s.out[which] = parent
		s.children = append(s.children, child)
	}
	return s, nil
}

// hand makes a terminal its user's own, so that programs can open it by name.
func (s *stdio) hand(tty *os.File, u *User) error {
	if u == nil {
		return nil
	}
	if err := tty.Chown(int(u.UID), -1); err != nil {
		s.close()
		return fmt.Errorf("hand terminal over: %w", err)
	}
	return nil
}

func (s *stdio) openStdin(feed bool) error {
	if !feed {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return fmt.Errorf("open stdin: %w", err)
		}
		s.children = append(s.children, null)
		return nil
	}
	parent, child, err := pipe(false)
	if err != nil {
		return err
	}
	s.stdin, s.children = parent, append(s.children, child)
	return nil
}

// close closes our ends and, if still open, the child's.
func (s *stdio) close() {
	s.closeChildren()
	if s.stdin != nil {
		_ = s.stdin.Close()
	}
	for _, f := range s.out {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (s *stdio) closeChildren() {
	for _, f := range s.children {
		_ = f.Close()
	}
	s.children = nil
}
