// Package setup decides on packages and on the runs that install what they need. It is
// pure: no files, no clock, no NATS.
//
// # Model
//
// A package is a manifest and files at one revision (package bundle reads them). Its key
// is its normalised name and the digest of its source. A setup run goes from planned over
// consented and running to one end: succeeded, failed or cancelled. [State] is the fold of
// the scope _profile and of the scopes of all runs; its methods decide what a command
// comes to, as events to append and things to tell the executor.
//
// # Guaranteed
//
// Consent is to one revision: key, profile, home, target, executor, command and the digest
// of every file. Nothing starts without it, and a run that succeeds uses it up. One run at
// a time per package. A run that was cancelled does not succeed, whatever its processes
// still report. Progress does not go back. What is installed and enabled changes by
// success, or by an enabling command, and by nothing else. A session that waits is told
// once, and not at all when what it was bound to has changed meanwhile.
//
// # Not guaranteed
//
// That files are still what they were: the executor checks that while it copies them.
package setup
