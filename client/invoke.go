package client

import (
	"context"

	"keryx/events"
)

// Invoke gives a slash command to the process that carries it out, and returns how it ended,
// or at once if it is async. That it failed is no error: see the view's state. A context
// without a deadline waits [Config.Patience] for the outcome; code timeout means that it may
// still come, see [Conn.Invocation].
func (c *Conn) Invoke(ctx context.Context, cmd events.InvokeCommand) (events.InvocationView, error) {
	return ask[events.InvocationView](ctx, c, events.CmdCommandInvoke, cmd)
}

// Invocation tells where a slash command stands, by the id of the command that gave it.
func (c *Conn) Invocation(ctx context.Context, session events.SessionID, id events.CommandID) (events.InvocationView, error) {
	return ask[events.InvocationView](ctx, c, events.CmdCommandShow, events.ShowCommand{Session: session, Invocation: id})
}

// SlashCommands returns the slash commands that this principal can give on a surface.
func (c *Conn) SlashCommands(ctx context.Context, surface string) ([]events.CommandItem, error) {
	m, err := ask[events.CommandMenu](ctx, c, events.CmdCommandList, events.CommandList{Surface: surface})
	return m.Commands, err
}
