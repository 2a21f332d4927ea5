// Package handlers knows which processes carry out slash commands in a profile, and decides
// whether another may.
//
// [State] is a fold of the profile's events. A registration holds as long as its process has
// the lease of kind handler under which it was made; who has it is the caller's to know. Of
// two live processes that want one name the first keeps it.
//
// It is pure: no I/O, no clock. A State is not safe for concurrent use.
package handlers
