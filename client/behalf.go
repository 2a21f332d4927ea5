package client

import (
	"context"

	"keryx/events"
)

type behalfKey struct{}

// behalf is on whose behalf, and under which id, a context's commands are sent.
type behalf struct {
	token   events.TokenName
	command events.CommandID
}

// WithActingFor returns a context whose commands are sent for a bearer token: the bus
// does what both this principal and the token may, and records both.
func WithActingFor(ctx context.Context, token events.TokenName) context.Context {
	b, _ := ctx.Value(behalfKey{}).(behalf)
	b.token = token
	return context.WithValue(ctx, behalfKey{}, b)
}

// WithCommandID returns a context whose commands have this id in place of a fresh one, a
// ULID: the same command sent again under it gets the first answer. It is for one command.
func WithCommandID(ctx context.Context, id events.CommandID) context.Context {
	b, _ := ctx.Value(behalfKey{}).(behalf)
	b.command = id
	return context.WithValue(ctx, behalfKey{}, b)
}

func behalfOf(ctx context.Context) behalf {
	b, _ := ctx.Value(behalfKey{}).(behalf)
	if b.command == "" {
		b.command = events.CommandID(events.NewID())
	}
	return b
}
