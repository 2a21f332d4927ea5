// Package node puts a bus together: the broker, the log, the leases and the
// authority over one directory.
//
// [Start] is for processes that serve; [OpenOffline] is for one-shot commands on a
// directory whose bus is not running: it opens the store itself, under the same
// lock, and serves only the caller, without timers, leases or a listener that others
// use. A node starts in the order broker, log, authority and stops in the reverse;
// each step of a stop is bounded.
package node
