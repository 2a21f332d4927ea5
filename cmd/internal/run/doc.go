// Package run runs the long-running commands: an fx app of services that starts in
// order, stops in the reverse, and obeys signals.
//
// The first SIGINT, SIGTERM or SIGHUP begins a clean stop, bounded by [StopTimeout];
// with [Config.Interrupt] a SIGINT first does what that says, such as interrupting a
// turn. A second signal during the stop ends the process at once with 128 + its number.
// fx alone would wait for one signal and then block until the stop is through.
//
// A [Service] that ends by itself, with or without an error, ends the app.
package run
