package gateway_test

import (
	"testing"

	"keryx/internal/gateway"
)

func TestParseTellsCommandsFromMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line    string
		command gateway.Command
		text    string
	}{
		{"hello", gateway.CommandNone, "hello"},
		{"", gateway.CommandNone, ""},
		{" /new", gateway.CommandNone, " /new"},
		{"/new", gateway.CommandNew, ""},
		{"/new ", gateway.CommandNew, ""},
		{"/status", gateway.CommandStatus, ""},
		{"/stop now", gateway.CommandStop, ""},
		{"/help", gateway.CommandHelp, ""},
		{"/bg sleep 1; echo /done ", gateway.CommandBackground, "sleep 1; echo /done"},
		{"/bg", gateway.CommandBackground, ""},
		{"/jobs", gateway.CommandJobs, ""},
		{"/kill  3fgd3v", gateway.CommandKill, "3fgd3v"},
		{"/approve", gateway.CommandApprove, ""},
		{"/approve 3fgd3v ", gateway.CommandApprove, "3fgd3v"},
		{"/deny 3fgd3v  not today", gateway.CommandDeny, "3fgd3v  not today"},
		{"/setup  accept 3fgd3v ", gateway.CommandSetup, "accept 3fgd3v"},
		{"/approved", gateway.CommandUnknown, "/approved"},
		{"/bgx", gateway.CommandUnknown, "/bgx"},
		{"/", gateway.CommandUnknown, "/"},
		{"/news", gateway.CommandUnknown, "/news"},
		{"/bin/ls -l", gateway.CommandUnknown, "/bin/ls -l"},
		{"/reset", gateway.CommandNew, ""},
		{"/queue", gateway.CommandQueue, ""},
		{"/deploy  v2 ", gateway.CommandUnknown, "/deploy  v2 "},
		{"/unknown", gateway.CommandUnknown, "/unknown"},
		{"//bin/ls -l", gateway.CommandNone, "/bin/ls -l"},
		{"///x", gateway.CommandNone, "//x"},
	} {
		command, text := gateway.Parse(c.line)
		if command != c.command || text != c.text {
			t.Errorf("Parse(%q) = %q, %q, want %q, %q", c.line, command, text, c.command, c.text)
		}
	}
}
