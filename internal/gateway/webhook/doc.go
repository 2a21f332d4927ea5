// Package webhook is a chat platform made of HTTP requests: signed ones come in, and
// signed ones go out.
//
// # In
//
// [Hook] is the handler of POST /v1/gateways/NAME. The body is checked as it came: by the
// signature of Standard Webhooks (id, time and body; 5 minutes tolerance in both
// directions), or by X-Hub-Signature-256, which covers the body alone: there the body's
// own digest is the message's id, so that a copy is the same message for as long as the
// bus remembers ids (24 h), whatever its unsigned headers say. An answer of 2xx means that
// the bus has it. While it has not, the answer is 503 with Retry-After.
//
// # Out
//
// Each part is a POST to the configured address, signed by Standard Webhooks under its
// stable id. Redirects are not followed. An address that is not public is refused, unless
// that is allowed, when the connection is made, after the name was resolved. A 410 and a
// redirect are final, Retry-After is obeyed, anything else but 2xx is tried again.
package webhook
