package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
)

type traceKey struct{}

type traceContext struct{ parent, state string }

// WithTrace returns a context whose commands carry this W3C trace context. Without one
// each command begins a trace of its own.
func WithTrace(ctx context.Context, traceparent, tracestate string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceContext{traceparent, tracestate})
}

func traceOf(ctx context.Context) traceContext {
	if t, ok := ctx.Value(traceKey{}).(traceContext); ok && t.parent != "" {
		return t
	}
	var b [24]byte
	rand.Read(b[:]) // never fails
	return traceContext{parent: "00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-01"}
}
