package stdio

import (
	"encoding/json"
	"fmt"
	"time"

	"keryx/events"
	"keryx/internal/gateway/platform"
	"keryx/internal/gateway/split"
)

// Version is that of the lines. A plugin says it in its hello.
const Version = 1

// Bounds of lines.
const (
	lineMost = 4 << 20
	// waitingMost is how many messages a plugin may send without having been answered.
	waitingMost = 1000
	defaultMax  = 4096
)

// fromPlugin is any line of a plugin.
type fromPlugin struct {
	Type string `json:"type"`
	// hello
	Version int    `json:"version"`
	Limit   *limit `json:"limit"`
	// message, sent, later, failed
	ID     string     `json:"id"`
	Chat   string     `json:"chat"`
	Thread string     `json:"thread"`
	User   string     `json:"user"`
	Text   string     `json:"text"`
	Data   events.Raw `json:"data"`
	Cursor string     `json:"cursor"`
	Own    bool       `json:"own"`
	// sent
	Message string `json:"message"`
	// later, failed
	AfterMS int64  `json:"after_ms"`
	Error   string `json:"error"`
	Final   bool   `json:"final"`
	// gap
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

type limit struct {
	Max  int        `json:"max"`
	Unit split.Unit `json:"unit"`
	// Escape are the characters before which the plugin puts a backslash.
	Escape string `json:"escape"`
}

// toPlugin is any line for a plugin.
type toPlugin struct {
	Type    string             `json:"type"`
	Version int                `json:"version,omitempty"`
	Account events.AccountName `json:"account,omitempty"`
	Cursor  string             `json:"cursor,omitempty"`
	ID      string             `json:"id,omitempty"`
	Chat    string             `json:"chat,omitempty"`
	Thread  string             `json:"thread,omitempty"`
	Text    string             `json:"text,omitempty"`
	Part    int                `json:"part,omitempty"`
	Parts   int                `json:"parts,omitempty"`
	Session events.SessionID   `json:"session,omitempty"`
	Receipt events.ReceiptID   `json:"receipt,omitempty"`
	// Duplicate, Echo and Command say why a message that was taken has no new receipt.
	Duplicate bool        `json:"duplicate,omitempty"`
	Echo      bool        `json:"echo,omitempty"`
	Command   bool        `json:"command,omitempty"`
	Code      events.Code `json:"code,omitempty"`
	Error     string      `json:"error,omitempty"`
	Retry     bool        `json:"retry,omitempty"`
}

func readLine(b []byte) (l fromPlugin, err error) {
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("a line of the plugin is not JSON: %w", err)
	}
	return l, nil
}

// limitOf is the limit that a hello names.
func limitOf(hello fromPlugin) (split.Limit, error) {
	if hello.Type != "hello" || hello.Version != Version {
		return split.Limit{}, fmt.Errorf("the plugin's first line is %q of version %d, not hello of version %d", hello.Type, hello.Version, Version)
	}
	if hello.Limit == nil {
		return split.Limit{Max: defaultMax, Unit: split.Runes}, nil
	}
	l := split.Limit{Max: hello.Limit.Max, Unit: hello.Limit.Unit}
	if marks := hello.Limit.Escape; marks != "" {
		l.Escape = func(s string) string { return escaped(s, marks) }
	}
	if err := l.Validate(); err != nil {
		return l, fmt.Errorf("the plugin's hello: %w", err)
	}
	return l, nil
}

// escaped puts a backslash before each of some characters.
func escaped(s, marks string) string {
	is := make(map[rune]bool, len(marks))
	for _, r := range marks {
		is[r] = true
	}
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if is[r] {
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}

func incoming(l fromPlugin) platform.Incoming {
	return platform.Incoming{
		Message: l.ID, Place: events.Place{Chat: l.Chat, Thread: l.Thread}, User: l.User, Text: l.Text,
		Data: l.Data, Cursor: l.Cursor, Own: l.Own,
	}
}

func outgoing(m platform.Outgoing) toPlugin {
	return toPlugin{
		Type: "send", ID: m.ID, Chat: m.Place.Chat, Thread: m.Place.Thread, Text: m.Text,
		Part: m.Part, Parts: m.Parts, Session: m.Session,
	}
}
