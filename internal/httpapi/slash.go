package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"keryx/events"
)

// outcomeWithin is how long a slash command may be waited for: the bus ends it after an hour
// at most.
const outcomeWithin = time.Hour + time.Minute

func commandRoutes() []route {
	invoke := post("/v1/commands/{name}", "invokeCommand", events.CmdCommandInvoke,
		"Give a slash command to its handler, once; only those that their handlers offer over HTTP. The answer is the outcome, or that it is under way if it is async").lasting()
	invoke.serve, invoke.optional = (*call).invokeCommand, []string{"surface"}
	return []route{
		get("/v1/commands", "listCommands", events.CmdCommandList, "List the slash commands that the token can give, over HTTP or on another surface"),
		invoke,
		get("/v1/sessions/{session}/commands/{invocation}", "showCommand", events.CmdCommandShow, "Tell how a slash command stands or ended"),
	}
}

// invokeCommand gives a slash command on the surface http, whatever the caller would like.
func (c *call) invokeCommand() error {
	data, err := c.data()
	if err != nil {
		return err
	}
	if given, ok := data["surface"]; ok {
		var surface string
		if json.Unmarshal(given, &surface) != nil || surface != events.SurfaceHTTP {
			return invalid("/surface", "here it is %q", events.SurfaceHTTP)
		}
	}
	data.setText("surface", events.SurfaceHTTP)
	ctx, cancel := context.WithTimeout(c.ctx(), outcomeWithin)
	defer cancel()
	waiting := *c // a refusal is written under the request's own context
	waiting.r = c.r.WithContext(ctx)
	return waiting.send(data)
}
