package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"time"

	"keryx/events"
	"keryx/internal/lifecycle"
)

// Decide says what to append, Fold makes it so, and the fold answers a repeat.
func ExampleDecide() {
	var s lifecycle.State
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	c := lifecycle.Command{
		ID: "01JC0MMAND0000000000000000", Session: "01JSESSI0N0000000000000000", Now: now, Mint: events.NewID,
		Caller: events.Principal{Profile: "home", Name: "bridge", Role: events.RoleGateway},
		Data:   events.Register{Names: events.Names{GatewaySessionKey: "cli:local"}},
	}
	d, err := lifecycle.Decide(&s, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, draft := range d.Drafts {
		data, err := json.Marshal(draft.Data)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("append", draft.Type)
		err = lifecycle.Fold(&s, events.Record{
			Type: draft.Type, Data: data, Time: now, Sequence: 1, Ordinal: 1, Epoch: draft.Epoch,
			Profile: "home", Scope: c.Session.Scope(), Source: c.Caller.Source(), Causation: c.ID,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	again, err := lifecycle.Decide(&s, c)
	fmt.Println(len(again.Drafts), string(again.Answer), err)
	// Output:
	// append keryx.session.registered.v1
	// 0 {"session":"01JSESSI0N0000000000000000","epoch":1,"created":true} <nil>
}
