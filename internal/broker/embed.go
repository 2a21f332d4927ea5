package broker

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"keryx/client"
	"keryx/events"
)

// TakenError says that a principal cannot be made because its name is in use.
type TakenError struct {
	Principal events.Principal // wanted
	By        events.Principal // has the name
}

// Error implements error.
func (e *TakenError) Error() string {
	return fmt.Sprintf("principal %s of profile %s is known already, as %s", e.Principal.Name, e.Principal.Profile, e.By.Role)
}

// Embed makes a principal that lives in this process only: its key is in memory and is
// taken from in-process connections alone. The same principal may be embedded several
// times. It returns [*TakenError] if the name stands for another principal.
func (b *Broker) Embed(p events.Principal) (client.Credentials, error) {
	return b.embed(holder{principal: p, local: true})
}

func (b *Broker) embed(h holder) (client.Credentials, error) {
	p := h.principal
	if err := p.Validate(); err != nil {
		return client.Credentials{}, fmt.Errorf("embed principal: %w", err)
	}
	if p.Name == events.AuthorityName {
		return client.Credentials{}, fmt.Errorf("embed principal: %w", &ReservedError{Name: p.Name})
	}
	pair, err := b.registry.embed(h)
	if err != nil {
		return client.Credentials{}, fmt.Errorf("embed principal: %w", err)
	}
	return credentials(p, pair)
}

// EmbedForOthers is [Broker.Embed] for a principal that acts for processes elsewhere: as a
// host it is none of the profile's default hosts unless principals.yaml says so.
func (b *Broker) EmbedForOthers(p events.Principal) (client.Credentials, error) {
	return b.embed(holder{principal: p, local: true, forOthers: true})
}

// Embedded lists the principals that live in this process.
func (b *Broker) Embedded() []events.Principal { return b.registry.embedded() }

// System returns an in-process connection without limits, for the authority. The
// caller closes it before [Broker.Stop]. It reconnects for as long as the broker runs;
// opts override what is set here.
func (b *Broker) System(name string, opts ...nats.Option) (*nats.Conn, error) {
	sign, err := signWith(b.systemKey)
	if err != nil {
		return nil, err
	}
	all := append([]nats.Option{
		nats.InProcessServer(b.server), nats.Name(name), sign, nats.MaxReconnects(-1),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			subject := ""
			if s != nil {
				subject = s.Subject
			}
			b.cfg.Logger.Error("system connection", "connection", name, "subject", subject, "error", err)
		}),
	}, opts...)
	nc, err := nats.Connect("", all...)
	if err != nil {
		return nil, fmt.Errorf("connect %s in process: %w", name, err)
	}
	return nc, nil
}

// InProcess provides connections to the broker that leave the process nowhere.
func (b *Broker) InProcess() nats.InProcessConnProvider { return b.server }
