// Package dirwatch says when files of a directory have changed.
//
// The kernel is asked to tell of changes; where it does not, as on network file systems or
// when its watches are used up, and where the directory is not there yet, the files are
// looked at by the clock. Either way a change is told once the files have been quiet for a
// moment, because an editor writes in several steps.
//
// Guaranteed: after the last change there is a call. Not guaranteed: a call for each
// change.
package dirwatch
