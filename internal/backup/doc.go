// Package backup copies a bus directory while its bus runs, and makes a directory of such a
// copy.
//
// # Model
//
// The log is append-only, so every beginning of it is a store as it once was. A backup
// copies the streams record by record, the log first and only up to a sequence behind
// which nothing was half done: one that the high-water mark names, which follows an
// append or a batch as a whole. It waits until the mark has reached what was in the files
// when it began. Imports, output, dead letters and leases are copied after it and hold at
// least what the log speaks of. Snapshots and indexes are projections and stay behind.
//
// # Guaranteed
//
// All that was answered before [Make] began is in the backup. Every record was compared
// with its checksum while it was copied; a damaged store gives no backup. The manifest is
// written last: a directory without one is no backup. [Restore] compares every file with
// the manifest and the streams with its counts, and makes the directory whole or not at
// all. The restored store has a generation above that of the backup, so that no fence of
// the time after the backup is good in it.
//
// # Not guaranteed
//
// Output is written without waiting for the disk, so the last chunks of execs that run may
// be missing; they show as a gap. Credentials, which are not in the bus directory, and
// what runs elsewhere are not in a backup.
package backup
