// Package e2e holds tests that run the real binaries as processes and kill them. It has
// no code of its own.
package e2e
