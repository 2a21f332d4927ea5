package replay

import (
	"fmt"
	"strings"

	"keryx/events"
)

func tellCommandInvoked(d events.CommandInvoked) (string, tone) {
	text := strings.TrimSpace(fmt.Sprintf("/%s %s", d.Name, d.RawArgs))
	return fmt.Sprintf("%s on %s, to %s", quoted(text), d.Surface, d.Handler.Principal), plain
}

func tellCommandCompleted(d events.CommandCompleted) (string, tone) {
	text := "/" + string(d.Name)
	if d.Reply != "" {
		text += ": " + quoted(d.Reply)
	}
	return text, good
}

func tellCommandFailed(d events.CommandFailed) (string, tone) {
	return fmt.Sprintf("/%s: %s: %s", d.Name, d.Error.Code, d.Error.Message), bad
}

func tellHandlerRegistered(d events.HandlerRegistered) (string, tone) {
	if len(d.Commands) == 0 {
		return string(d.Principal) + " carries out nothing", plain
	}
	names := make([]string, len(d.Commands))
	for i, c := range d.Commands {
		names[i] = "/" + string(c.Name)
	}
	return string(d.Principal) + " carries out " + strings.Join(names, ", "), plain
}
