// Package services makes the services of the long-running commands out of the internal
// packages: which principal does what, in one process or in several.
package services
