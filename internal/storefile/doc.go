// Package storefile reads the files of a closed store: the message blocks of the
// server's streams, without the server.
//
// # Why
//
// The server heals silently. A block with a damaged record it cuts off there, or, with
// its index whole, it steps over the record; both lose acknowledged messages without a
// word, and the first gives their numbers out again (measured on nats-server 2.15.3).
// Therefore a store is read here first, record by record, while nothing has it open.
//
// # Model
//
// A stream's directory has blocks, 1.blk, 2.blk and so on. A block is records, each with a
// sequence, a time, a subject, headers, data and a HighwayHash-64 over them, keyed by the
// stream's name and the block's number. A record can also say that a sequence was
// erased, or, as a tombstone, that an earlier one was deleted. [Scan] compares every
// hash, and [Cut] takes what is damaged out of a block, keeping the block as it was.
//
// # Guaranteed
//
// Scan changes nothing. What a report counts has a right hash. A record that was written
// only in part at the very end of the last block is told apart from damage: a kill leaves
// such, and nobody was answered for it.
//
// # Not guaranteed
//
// A block that was removed whole leaves no trace in the files if messages may be
// missing there: see package sessionlog's high-water mark, which counts. Encrypted or
// compressed blocks, which this bus does not write, are reported as malformed.
package storefile
