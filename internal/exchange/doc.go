// Package exchange brings a session's record from a bus into a file, and from a file into
// a bus.
//
// [Export] reads the record and the kept output twice: once to count, since the file says
// first how much there is, and once to write. The record is that up to the event that was
// the newest at the beginning. [Check] reads a file without a bus.
//
// Guaranteed: a file is complete or is not there; what is missing of output is missing in
// the file, as in the record. Not guaranteed: that output which is dropped meanwhile for
// lack of room is in the file; the export then fails and can be tried again.
package exchange
