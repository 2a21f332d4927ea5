//go:build !race

package authority_test

// slow divides the rounds of heavy tests; without the race detector all are run.
const slow = 1
