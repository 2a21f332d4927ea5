package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
	"keryx/internal/backup"
	"keryx/internal/broker"
	"keryx/internal/sessionlog"
	"keryx/internal/storefile"
)

// Exit codes of every program.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
	// ExitSignal plus a signal's number is the code after that signal ended it.
	ExitSignal = 128
)

// UsageError says that a command was called wrongly.
type UsageError struct{ Err error }

// Usagef returns a [UsageError] with a formatted message.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Error implements error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what was wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// ExitError ends a program with a code. Without Err nothing more is said.
type ExitError struct {
	Code int
	Err  error
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns what was wrong.
func (e *ExitError) Unwrap() error { return e.Err }

// CodeOf returns the error table's code of any error.
func CodeOf(err error) events.Code {
	var refusal *events.Error
	var held *broker.HeldError
	var regressed *sessionlog.RegressedError
	var damaged *storefile.DamagedError
	var mismatch *storefile.MismatchError
	var bad *backup.BadError
	var notEmpty *backup.NotEmptyError
	var format *storefile.FormatError
	var taken *broker.TakenError
	var reserved *broker.ReservedError
	switch {
	case errors.As(err, &refusal):
		return refusal.Code
	case errors.As(err, &held):
		return events.CodeLeaseHeld
	case errors.As(err, &regressed):
		return events.CodeStoreRegressed
	case errors.As(err, &format) && format.Err == nil:
		return events.CodeStoreNewer
	case errors.As(err, &damaged), errors.As(err, &bad), errors.As(err, &mismatch), errors.As(err, &format), errors.Is(err, sessionlog.ErrBadMark),
		errors.Is(err, storefile.ErrNoDescription):
		return events.CodeStoreDamaged
	case errors.As(err, &taken):
		return events.CodeIdentityConflict
	case errors.As(err, &reserved), errors.Is(err, nats.ErrAuthorization), errors.Is(err, fs.ErrPermission):
		return events.CodeForbidden
	case errors.Is(err, broker.ErrNotRunning), errors.Is(err, backup.ErrBehind), errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrConnectionClosed),
		errors.Is(err, syscall.EADDRINUSE),
		errors.Is(err, syscall.EPIPE): // nobody reads what is written
		return events.CodeUnavailable
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return events.CodeStoreFull
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return events.CodeTimeout
	case errors.Is(err, client.ErrLoosePermissions), errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist),
		errors.Is(err, syscall.ENOTDIR), errors.As(err, &notEmpty), errors.Is(err, events.ErrBadID), errors.Is(err, client.ErrBadCredentials):
		return events.CodeInvalid
	}
	return events.CodeInternal
}

// Message returns an error's line for a person: code, message and details.
func Message(err error) string {
	code, text := CodeOf(err), err.Error()
	var refusal *events.Error
	if errors.As(err, &refusal) {
		text = strings.Replace(text, string(code)+": ", "", 1)
		for _, k := range slices.Sorted(maps.Keys(refusal.Details)) {
			text += fmt.Sprintf(" [%s=%s]", k, refusal.Details[k])
		}
	}
	return string(code) + ": " + strings.ReplaceAll(text, "\n", "; ")
}
