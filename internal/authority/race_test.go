//go:build race

package authority_test

// slow divides the rounds of heavy tests: the race detector makes each much slower.
const slow = 5
