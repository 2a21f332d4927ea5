package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

func TestEmbeddedPrincipalActsFromThisProcessOnly(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	p := events.Principal{Profile: "main", Name: "shell", Role: events.RoleHost}
	creds, err := b.Embed(p)
	if err != nil {
		t.Fatal(err)
	}
	if creds.Principal != p {
		t.Errorf("credentials of %+v", creds.Principal)
	}
	if err := bustest.Connect(t, b, creds).Flush(); err != nil {
		t.Errorf("in process: %v", err)
	}
	refusedKey(t, b, creds.Seed)
	again, err := b.Embed(p)
	if err != nil {
		t.Fatalf("a second time: %v", err)
	}
	if err := bustest.Connect(t, b, again).Flush(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if got := b.Embedded(); !slices.Equal(got, []events.Principal{p}) {
		t.Errorf("embedded: %v", got)
	}
}

func TestNamesThatCannotBeEmbedded(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	bustest.Principal(t, b, "main", "shell", events.RoleHost)
	if _, err := b.Embed(events.Principal{Profile: "main", Name: "cli", Role: events.RoleGateway}); err != nil {
		t.Fatal(err)
	}
	var taken *broker.TakenError
	var reserved *broker.ReservedError
	for name, c := range map[string]struct {
		p    events.Principal
		want any
	}{
		"of the file":              {events.Principal{Profile: "main", Name: "shell", Role: events.RoleHost}, &taken},
		"embedded in another role": {events.Principal{Profile: "main", Name: "cli", Role: events.RoleHost}, &taken},
		"operator, another role":   {events.Principal{Profile: "main", Name: "operator", Role: events.RoleHost}, &taken},
		"of the authority":         {events.Principal{Profile: "main", Name: events.AuthorityName, Role: events.RoleHost}, &reserved},
	} {
		if _, err := b.Embed(c.p); err == nil || !errors.As(err, c.want) {
			t.Errorf("%s: got %v, want a %T", name, err, c.want)
		}
	}
	if _, err := b.Embed(events.Principal{Profile: "main", Name: "Bad.Name", Role: events.RoleHost}); !errors.Is(err, events.ErrBadID) {
		t.Errorf("malformed: %v, want ErrBadID", err)
	}
	if _, err := b.Embed(events.Principal{Profile: "main", Name: "operator", Role: events.RoleOperator}); err != nil {
		t.Errorf("the operator itself: %v", err)
	}
}

func TestFileDoesNotTakeTheNameOfAnEmbeddedPrincipal(t *testing.T) {
	t.Parallel()
	log := &lines{}
	b := bustest.Broker(t, log.option)
	p := events.Principal{Profile: "main", Name: "shell", Role: events.RoleHost}
	if _, err := b.Embed(p); err != nil {
		t.Fatal(err)
	}
	stranger := bustest.Principal(t, b, "main", "shell", events.RoleOperator)
	refusedKey(t, b, stranger.Seed)
	if got, ok := b.Registry().Lookup("main", "shell"); !ok || got != p {
		t.Errorf("the registry knows shell as %+v", got)
	}
	if log.count("is not let in") == 0 {
		t.Error("nothing was said about it")
	}
}

func TestDefaultHostsAreThoseSetElseEveryHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "default_hosts:\n  lab: [pinned]\nprincipals:\n"
	for _, e := range []string{"main zed host", "main exe executor", "lab one host", "other alone host"} {
		var profile, name, role string
		if _, err := fmt.Sscan(e, &profile, &name, &role); err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("- {profile: %s, name: %s, role: %s, public_key: %s}\n", profile, name, role, publicKey(t))
	}
	writePrincipals(t, dir, text)
	b := bustest.Broker(t, bustest.Dir(dir))
	if _, err := b.Embed(events.Principal{Profile: "main", Name: "built-in", Role: events.RoleHost}); err != nil {
		t.Fatal(err)
	}
	for profile, want := range map[events.Profile]string{"main": "[built-in zed]", "lab": "[pinned]", "other": "[alone]", "none": "[]"} {
		if got := fmt.Sprint(b.Registry().DefaultHosts(profile)); got != want {
			t.Errorf("default hosts of %s are %s, want %s", profile, got, want)
		}
	}
}

func TestSystemConnectionHasNoLimitsAndOutsidersCannotUseItsKey(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc := bustest.System(t, b)
	heard := listen(t, b, "kx.host.>")
	if err := errors.Join(nc.Publish("kx.host.lab.h.I.offer", nil), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	if got := heard(); len(got) != 1 {
		t.Errorf("heard %v", got)
	}
	for name, opt := range map[string]nats.Option{
		"nothing":      nats.Name("x"),
		"user":         nats.UserInfo("system", "system"),
		"token":        nats.Token("system"),
		"unsigned key": nats.Nkey(publicKey(t), func([]byte) ([]byte, error) { return make([]byte, 64), nil }),
	} {
		if c, err := nats.Connect(b.URL(), opt); !errors.Is(err, nats.ErrAuthorization) {
			c.Close()
			t.Errorf("with %s: %v, want an authorization error", name, err)
		}
	}
}
