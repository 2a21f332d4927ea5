package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"regexp"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

type traceKey struct{}

type traceContext struct{ parent, state string }

// WithTrace returns a context whose commands carry this W3C trace context. Without one,
// or with a malformed traceparent, each command begins a trace of its own.
func WithTrace(ctx context.Context, traceparent, tracestate string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceContext{traceparent, tracestate})
}

var traceparentForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}`)

func traceOf(ctx context.Context) traceContext {
	if t, ok := ctx.Value(traceKey{}).(traceContext); ok && traceparentForm.MatchString(t.parent) {
		return t
	}
	var b [24]byte
	rand.Read(b[:]) // never fails
	return traceContext{parent: "00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-01"}
}

// withTraceOf goes on with the trace of an order, if it has one.
func withTraceOf(ctx context.Context, m *nats.Msg) context.Context {
	if parent := m.Header.Get(events.ExtTraceParent); parent != "" {
		return WithTrace(ctx, parent, m.Header.Get(events.ExtTraceState))
	}
	return ctx
}
