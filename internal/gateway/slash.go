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
	// CommandBackground, CommandJobs and CommandKill are about jobs; the first and the last
	// take a text.
	CommandBackground Command = "bg"
	CommandJobs       Command = "jobs"
	CommandKill       Command = "kill"
	// CommandApprove and CommandDeny answer what waits for somebody's word; they take its id.
	CommandApprove Command = "approve"
	CommandDeny    Command = "deny"
	// CommandSetup plans a package's setup, accepts or cancels it; it takes which.
	CommandSetup Command = "setup"
	// CommandReset is CommandNew by its other name.
	CommandReset Command = "reset"
	// CommandQueue lists what waits.
	CommandQueue Command = "queue"
	// CommandUnknown is a command that the gateway itself does not have: a handler may.
	CommandUnknown Command = "unknown"
)

// Help lists the commands.
const Help = `/new      end this epoch and begin the next
/reset    the same as /new
/status   what the session is and waits for
/stop     interrupt the running turn
/queue    list what waits for its turn
/bg CMD   run a command in the background; the session is told of its end
/jobs     list what runs
/kill JOB end a job: its id, or the end of that
/approve [ID]      let a command run that waits for somebody's word
/deny ID [REASON]  refuse it
/setup NAME        show what the setup of a package would run
/setup accept RUN  consent to that and run it; /setup cancel RUN ends it
/help     this list
//text    send a message that begins with a slash
`

// Parse tells commands from messages. For a message, text is what to send: the line, or
// without its first slash if it has two. For a command that the gateway does not have it is
// the whole line, for one that takes a text that.
func Parse(line string) (c Command, text string) {
	switch {
	case !strings.HasPrefix(line, "/"):
		return CommandNone, line
	case strings.HasPrefix(line, "//"):
		return CommandNone, line[1:]
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch c := Command(word[1:]); c {
	case CommandBackground, CommandKill, CommandApprove, CommandDeny, CommandSetup:
		return c, strings.TrimSpace(rest)
	case CommandJobs:
		return c, ""
	case CommandReset:
		return CommandNew, ""
	case CommandNew, CommandStatus, CommandStop, CommandHelp, CommandQueue:
		return c, ""
	}
	return CommandUnknown, line
}

// unknownCommand explains why a line was not sent.
func unknownCommand(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return "no command " + word + "; /help lists them, and //text sends a message that begins with a slash"
}
