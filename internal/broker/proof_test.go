package broker_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"keryx/client"
	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

func TestAProofIsTakenInTheFormOfEveryClientLanguage(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	agent := bustest.Principal(t, b, "main", "agent", events.RoleHost)
	other := bustest.Principal(t, b, "main", "other", events.RoleHost)
	for name, tc := range map[string]struct {
		encode func([]byte) string
		signer client.Credentials
		want   string
	}{
		"as clients in Go send it":         {base64.RawURLEncoding.EncodeToString, agent, "PONG"},
		"as other languages send it":       {base64.StdEncoding.EncodeToString, agent, "PONG"},
		"another's signature":              {base64.StdEncoding.EncodeToString, other, "-ERR 'Authorization Violation'"},
		"a signature in no known alphabet": {func(b []byte) string { return fmt.Sprintf("%x!", b) }, agent, "-ERR 'Authorization Violation'"},
		"none":                             {func([]byte) string { return "" }, agent, "-ERR 'Authorization Violation'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := prove(t, b, agent, tc.signer, tc.encode); got != tc.want {
				t.Errorf("the server said %q, want %q", got, tc.want)
			}
		})
	}
}

// prove connects by hand as a principal and returns what the server says to a ping.
func prove(t *testing.T, b *broker.Broker, as, signer client.Credentials, encode func([]byte) string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(b.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // the server may have closed it
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	var info struct{ Nonce string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(readLine(t, in), "INFO ")), &info); err != nil {
		t.Fatal(err)
	}
	public, sig := signed(t, as, signer, []byte(info.Nonce))
	connect, err := json.Marshal(map[string]any{"nkey": public, "sig": encode(sig), "protocol": 1, "verbose": false})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "CONNECT %s\r\nPING\r\n", connect); err != nil {
		t.Fatal(err)
	}
	return readLine(t, in)
}

func readLine(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	line, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// signed returns the key of one principal and a signature of another.
func signed(t *testing.T, as, signer client.Credentials, nonce []byte) (public string, sig []byte) {
	t.Helper()
	pair, err := nkeys.FromSeed(as.Seed)
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if pair, err = nkeys.FromSeed(signer.Seed); err != nil {
		t.Fatal(err)
	}
	if sig, err = pair.Sign(nonce); err != nil {
		t.Fatal(err)
	}
	return public, sig
}
