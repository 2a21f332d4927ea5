package client_test

import (
	"net/url"
	"testing"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

func addPrincipal(t testing.TB, b *broker.Broker, name events.PrincipalName, role events.Role) client.Credentials {
	t.Helper()
	return bustest.Principal(t, b, profile, name, role)
}

func hostPort(t testing.TB, addr string) string {
	t.Helper()
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
