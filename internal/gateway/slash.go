package gateway

import "strings"

// Command is what a line that begins with a slash asks for.
type Command string

// The commands of a chat.
const (
	// CommandNone is a message to be sent.
	CommandNone   Command = ""
	CommandNew    Command = "new"
	CommandStatus Command = "status"
	CommandStop   Command = "stop"
	CommandHelp   Command = "help"
	// CommandUnknown is a command that does not exist.
	CommandUnknown Command = "unknown"
)

// Help lists the commands.
const Help = `/new      end this epoch and begin the next
/status   what the session is and waits for
/stop     interrupt the running turn
/help     this list
//text    send a message that begins with a slash
`

// Parse tells commands from messages. For a message, text is what to send: the line, or
// without its first slash if it has two. For an unknown command it is the command.
func Parse(line string) (c Command, text string) {
	switch {
	case !strings.HasPrefix(line, "/"):
		return CommandNone, line
	case strings.HasPrefix(line, "//"):
		return CommandNone, line[1:]
	}
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch c := Command(word[1:]); c {
	case CommandNew, CommandStatus, CommandStop, CommandHelp:
		return c, ""
	}
	return CommandUnknown, word
}

// unknownCommand explains why a line was not sent.
func unknownCommand(word string) string {
	return "no command " + word + "; /help lists them, and //text sends a message that begins with a slash"
}
