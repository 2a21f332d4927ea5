package events_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"keryx/events"
)

func ExampleNewCommand() {
	gateway := events.Principal{Profile: "default", Name: "gw", Role: events.RoleGateway}
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	cmd, err := events.NewCommand(gateway, events.CmdContinuationSubmit, "01JC0MMAND0000000000000000", now,
		events.Submit{To: "cli:local", Body: events.Body{Text: "echo hello"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	subject, err := events.CmdSubject(gateway.Profile, gateway.Name, events.CmdContinuationSubmit)
	if err != nil {
		fmt.Println(err)
		return
	}
	header, body, err := events.Encode(cmd)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(subject)
	fmt.Println(header.Get("ce-type"))
	fmt.Println(string(body))
	// Output:
	// kx.cmd.default.gw.continuation.submit
	// keryx.cmd.continuation.submit.v1
	// {"to":"cli:local","body":{"text":"echo hello"}}
}

func ExampleDecode() {
	_, err := events.Decode(nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-source": {"/s"}, "ce-type": {"t"}, "ce-note": {"%FF"},
	}, nil)
	var refused *events.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, refused.Path)
	}
	// Output:
	// undecodable note
}

func ExampleDecodeRecord() {
	header := nats.Header{
		"ce-specversion": {"1.0"}, "ce-id": {"01JEVENT000000000000000000"}, "ce-source": {"/profiles/default/principals/shell"},
		"ce-type": {"keryx.turn.ended.v1"}, "ce-ordinal": {"7"}, "ce-epoch": {"1"},
	}
	body := []byte(`{"turn":"01JTVRN0000000000000000000","outcome":"completed","reply":"hello"}`)
	r, err := events.DecodeRecord("kx.live.default.01JSESS10N0000000000000000", 42, header, body)
	if err != nil {
		fmt.Println(err)
		return
	}
	ended, err := events.DataOf[events.TurnEnded](r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Sequence, r.Ordinal, r.Type.Short(), ended.Outcome, ended.Reply)
	// Output:
	// 42 7 turn.ended completed hello
}
