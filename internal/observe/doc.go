// Package observe is how a process tells about itself: its log, and over HTTP on
// loopback whether it is alive and ready.
//
// /healthz answers 200 as long as the process serves at all; /readyz answers 200 when it
// can do its work and 503, with the reason, when it cannot. Both are for the machine the
// process runs on: [Serve] refuses an address that is not loopback. Requests are bounded
// in size and time. Trace context travels in the events themselves, see package client.
package observe
