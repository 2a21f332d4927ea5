// Package privdir makes sure that a directory is private to a user, so that what is put
// there, sockets above all, is out of the reach of others.
//
// A private directory is a real directory of its user with mode 0700, reached without a
// symbolic link, below directories that nobody but root and that user can change: each is
// theirs, and who else may write there cannot replace what is in it (the sticky bit).
// Therefore what was found out by [Check] holds afterwards: only the user and root could
// change it. The path is walked with descriptors, a name at a time, so that nothing is
// looked at twice by its name.
//
// Errors are *[events.Error], a code for each reason. Where the platform has no POSIX
// users all calls are refused as unsupported.
package privdir
