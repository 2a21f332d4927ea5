package replay

import (
	"fmt"
	"time"

	"keryx/events"
)

func tellPlace(p events.Place) string {
	if p.Thread == "" {
		return p.Chat
	}
	return p.Chat + " thread " + p.Thread
}

func tellReceived(d events.GatewayReceived) (string, tone) {
	text := fmt.Sprintf("message %s at %s of %s, for session %s, receipt %s", d.Message, tellPlace(d.Place), d.Account, d.Session, d.Receipt)
	if d.Cursor != "" {
		text += ", cursor " + d.Cursor
	}
	return text, plain
}

func tellSent(d events.GatewaySent) (string, tone) {
	text := fmt.Sprintf("%s, part %d of %d, to %s of %s", d.Send, d.Part, d.Parts, tellPlace(d.Place), d.Account)
	if d.Message != "" {
		text += ", as message " + d.Message
	}
	if d.Session != "" {
		text += ", for session " + string(d.Session)
	}
	return text, plain
}

func tellDelayed(d events.GatewayDelayed) (string, tone) {
	text := fmt.Sprintf("%s, part %d of %d, to %s of %s, until %s after try %d: %s", d.Send, d.Part, d.Parts,
		tellPlace(d.Place), d.Account, d.Until.UTC().Format(time.RFC3339), d.Attempt, d.Reason)
	if d.Session != "" {
		text += ", for session " + string(d.Session)
	}
	return text, warn
}

func tellDropped(d events.GatewayDropped) (string, tone) {
	text := d.Reason
	if d.Send != "" {
		text = fmt.Sprintf("%s, from part %d on: %s", d.Send, d.Part, text)
	}
	if d.Place.Chat != "" {
		text += ", for " + tellPlace(d.Place)
	}
	text += ", account " + string(d.Account)
	if !d.GapFrom.IsZero() || !d.GapTo.IsZero() {
		text += fmt.Sprintf(", nothing is known from %s to %s", d.GapFrom.UTC().Format(time.RFC3339), d.GapTo.UTC().Format(time.RFC3339))
	}
	if d.Session != "" {
		text += ", session " + string(d.Session)
	}
	return text, bad
}
