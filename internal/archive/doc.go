// Package archive is the file format in which a session's record leaves a bus and comes
// into another.
//
// # Format
//
// JSON lines. Each is {"chain":"<hex>","<kind>":<body>}: first one "header", then an
// "event" or, for what cannot be decoded, "raw" for each message of the record, in order,
// then a "chunk" for each kept piece of output, by exec and number, last one "end". An
// event is a structured CloudEvent with its sequence and ordinal, its payload byte for
// byte. The chain value of a line is the SHA-256 of the value before (32 zero bytes
// before the first) followed by kind, a line feed and body. "content" in header and end is such a
// chain over all lines but these two: it is the same for the same record, whenever and
// wherever it was exported.
//
// # Guaranteed
//
// [Writer] writes one form for one record, and a [Parser] takes no other: a line that is
// damaged, edited, missing, repeated or out of order is refused with its number, and so is
// a file that ends early. What a Parser took gives the same file again. Parsers need the
// memory of one line.
//
// # Not guaranteed
//
// That nobody made up a file: who edits one and computes all hashes anew is not found out.
// Compare the content hash with one that came another way.
package archive
