package storefile

import (
	"fmt"

	"keryx/events"
)

// DamagedError says that streams which hold the truth are not what was written to them.
type DamagedError struct {
	Dir     string
	Damages []Damage // at least one
}

// Error implements error; it says what can be done.
func (e *DamagedError) Error() string {
	more := ""
	if n := len(e.Damages) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s: the store in %s is damaged: %s%s. 'bus doctor' lists every place. Restore a backup, or serve what is left with --accept-loss, which keeps the files as they are in %s/%s and is recorded",
		events.CodeStoreDamaged, e.Dir, e.Damages[0], more, e.Dir, keptDir)
}

// MismatchError says that the server found something else in a stream's files than they
// hold.
type MismatchError struct {
	Dir, Stream           string
	Files, Server         uint64
	FilesLast, ServerLast events.Sequence
}

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: the server reads %d messages up to sequence %d from stream %s in %s, whose files hold %d up to %d: run 'bus doctor --repair', which has the index made again",
		events.CodeStoreDamaged, e.Server, e.ServerLast, e.Stream, e.Dir, e.Files, e.FilesLast)
}
