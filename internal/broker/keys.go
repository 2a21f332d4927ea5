package broker

import (
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"keryx/client"
	"keryx/events"
)

// newKey returns a fresh user key and its public half.
func newKey() (nkeys.KeyPair, string, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", fmt.Errorf("make key: %w", err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, "", fmt.Errorf("read public key: %w", err)
	}
	return pair, public, nil
}

// credentials returns what a client needs to prove p by pair.
func credentials(p events.Principal, pair nkeys.KeyPair) (client.Credentials, error) {
	seed, err := pair.Seed()
	if err != nil {
		return client.Credentials{}, fmt.Errorf("read seed: %w", err)
	}
	return client.Credentials{Principal: p, Seed: seed}, nil
}

// signWith proves pair to the server.
func signWith(pair nkeys.KeyPair) (nats.Option, error) {
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("read public key: %w", err)
	}
	return nats.Nkey(public, pair.Sign), nil
}
