package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"keryx/events"
)

// DefaultGrace is the time from TERM to KILL when none is given.
const DefaultGrace = 5 * time.Second

// MaxRead is the largest piece handed to [Spec.Output], in bytes.
const MaxRead = 64 << 10

// Stream is one of the output streams of a process.
type Stream int

// The output streams.
const (
	Stdout Stream = iota
	Stderr
	Terminal // of a process that has a terminal, its only one
	streams  // how many there are
)

// String returns the stream's name on the bus.
func (s Stream) String() string { return [...]string{"stdout", "stderr", "pty"}[s] }

// NumStreams is one more than the highest [Stream].
const NumStreams = int(streams)

// Streams lists those of a process with or without a terminal, stdout first.
func Streams(terminal bool) []Stream {
	if terminal {
		return []Stream{Terminal}
	}
	return []Stream{Stdout, Stderr}
}

// Spec says what to run. Argv is required; the zero value of each other field is valid.
type Spec struct {
	// Argv is passed as it is. Argv[0] without a slash is looked up in the PATH of Env.
	Argv []string
	// Env is the whole environment, as NAME=value. Nil: an empty one.
	Env []string
	// Dir is absolute. Empty: the caller's own working directory.
	Dir string
	// User is who runs it. Nil: this process's own user. Needs the right to switch.
	User *User
	// Stdin is fed to the process, then closed. Nil: /dev/null. Into a terminal it is
	// typed, and more can follow.
	Stdin []byte
	// Extra are further descriptors, from 3 on. They stay the caller's to close.
	Extra []*os.File
	// Terminal gives the process a terminal of that size as its three descriptors, and
	// as its controlling one. Nil: pipes.
	Terminal *Size
	// Timeout stops the tree after so long. 0: never.
	Timeout time.Duration
	// Grace is the time from TERM to KILL when the tree is stopped for a reason other
	// than [Process.Stop]. Nil: [DefaultGrace]. 0: KILL at once.
	Grace *time.Duration
	// Groups is where a control group is made for the tree, which Group names. Nil, or
	// where that fails: the tree is searched for.
	Groups *Groups
	Group  string
	// Limits bound the tree. Where one cannot be enforced nothing is started: the error
	// wraps [ErrNoLimits]. Nil: none.
	Limits *Limits
	// Mark is an entry of Env (NAME=value) that no other tree carries. A search finds
	// descendants that left the session by it, too. Empty: it does not.
	Mark string
	// Leave keeps what runs on after the leader's exit; [Exit.LeftPIDs] names it.
	Leave bool
	// Output is called for each piece read, by one goroutine at a time; the bytes are
	// valid during the call only. While it blocks nothing more is read, so that the
	// process is slowed down. It must return some time. Nil: output is thrown away.
	Output func(Stream, []byte)
}

// User is who a process runs as.
type User struct {
	UID, GID uint32
	Groups   []uint32 // besides GID
}

// Exit is how a process tree ended.
type Exit struct {
	// Code is the exit status of the leader, or -1 when a signal ended it.
	Code int
	// Signal is the name of that signal, e.g. SIGKILL.
	Signal   string
	TimedOut bool
	// Stopped is true when Stop was called, or the context of Start ended, while the
	// leader ran.
	Stopped bool
	// Duration is from the start to the leader's exit.
	Duration time.Duration
	Cleanup  events.Cleanup
	LeftPIDs []int
}

// ErrInvalid is wrapped by errors about a malformed [Spec] or grace.
var ErrInvalid = errors.New("invalid process")

// LaunchError says why a process could not be started. Err is the system's reason, so
// that errors.Is with fs.ErrNotExist and fs.ErrPermission works.
type LaunchError struct {
	Op   string // "look up command", "enter directory", "execute"
	Name string
	Err  error
}

// Error implements error.
func (e *LaunchError) Error() string { return fmt.Sprintf("%s %q: %v", e.Op, e.Name, e.Err) }

// Unwrap returns the system's reason.
func (e *LaunchError) Unwrap() error { return e.Err }

// Validate returns an error wrapping [ErrInvalid] that names the first malformed field.
func (s Spec) Validate() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return invalid("argv is empty or begins with an empty string")
	}
	for _, a := range s.Argv {
		if strings.ContainsRune(a, 0) {
			return invalid("an argument holds a NUL byte")
		}
	}
	for _, e := range s.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" || strings.ContainsRune(e, 0) {
			return invalid("environment entry %q is not NAME=value", e)
		}
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		return invalid("directory %q is not absolute", s.Dir)
	}
	if s.Timeout < 0 {
		return invalid("timeout %v is negative", s.Timeout)
	}
	if s.Terminal != nil {
		if err := s.Terminal.validate(); err != nil {
			return err
		}
	}
	_, err := graceOf(s.Grace)
	return err
}

func graceOf(g *time.Duration) (time.Duration, error) {
	if g == nil {
		return DefaultGrace, nil
	}
	if *g < 0 {
		return 0, invalid("grace %v is negative", *g)
	}
	return *g, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrInvalid)...)
}
