package replay

import (
	"fmt"
	"strings"

	"keryx/events"
)

func tellExecRequested(d events.ExecRequested) (string, tone) {
	text := fmt.Sprintf("in %s: %s", d.Selection.Target, commandLine(d.Spec.Argv))
	if d.Spec.Cwd != "" {
		text += " in directory " + d.Spec.Cwd
	}
	if n := len(d.Spec.Stdin); n > 0 {
		text += fmt.Sprintf(" with %d bytes of input", n)
	}
	return text, plain
}

// commandLine spells an argument list as a shell would take it.
func commandLine(argv []string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = shellWord(a)
	}
	return strings.Join(out, " ")
}

func shellWord(a string) string {
	const free = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+"
	if a != "" && strings.Trim(a, free) == "" {
		return a
	}
	return "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
}

func tellExecStarted(d events.ExecStarted) (string, tone) {
	return fmt.Sprintf("process %d", d.PID), dim
}

func tellExecRefused(d events.ExecRefused) (string, tone) {
	return fmt.Sprintf("never ran: %s: %s", d.Code, d.Message), bad
}

func tellExecExited(d events.ExecExited) (string, tone) {
	text, t := fmt.Sprintf("exit %d", d.ExitCode), good
	if d.ExitCode != 0 {
		t = warn
	}
	if d.Signal != "" {
		text = "ended by " + d.Signal
	}
	switch {
	case d.TimedOut:
		text += ", out of time"
	case d.Stopped:
		text += ", as asked"
	}
	text += " after " + milliseconds(d.DurationMS)
	for _, s := range d.Streams {
		text += stream(s)
	}
	if d.Cleanup == events.CleanupLeft {
		text, t = text+fmt.Sprintf(", processes left: %v", d.LeftPIDs), bad
	}
	return text, t
}

// stream tells what was written to one stream; nothing of an empty one.
func stream(s events.StreamSummary) string {
	if s.Bytes == 0 {
		return ""
	}
	text := fmt.Sprintf(", %s %s", s.Name, count(int(s.Bytes), "byte"))
	if s.Redacted > 0 {
		text += fmt.Sprintf(" (%s hidden)", count(int(s.Redacted), "secret"))
	}
	if s.MissingBytes > 0 {
		text += fmt.Sprintf(" (%d not kept)", s.MissingBytes)
	}
	return text
}

func tellExecLost(d events.ExecLost) (string, tone) { return "nobody saw its end: " + d.Reason, bad }
