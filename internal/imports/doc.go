// Package imports keeps records that came from another bus, read-only.
//
// # Model
//
// The stream of imports has one subject per session. An [Upload] takes a file of package
// archive piece by piece, checks each line, and appends what it says: first the messages
// of the record, then the output. Each carries the import's id and, for a message, the
// sequence that it had where it comes from. At the end the upload returns a
// session.imported event. The caller appends that to the log; by it the record is there,
// and without it nothing of it is. Reading goes by the fact: it says where in the stream
// the record is, and which import's messages count.
//
// # Guaranteed
//
// What is read has the sequences and bytes of the exported record. What an upload that was
// given up has left behind is never read, and is removed by the next of that session.
//
// # Not guaranteed
//
// That an upload outlives its process: it is begun again.
package imports
