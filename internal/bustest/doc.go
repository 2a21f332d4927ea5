// Package bustest starts real brokers for tests of other packages.
//
// Every broker has a directory of its own and ends with its test, so tests may run in
// parallel. Nothing here is faked: the server, the store, the rights and the
// credentials are those of a bus.
package bustest
