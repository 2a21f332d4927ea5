package services

import (
	"log/slog"
	"os/user"

	"github.com/spf13/cobra"

	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/gateway"
)

// ChatFlags are the flags of a conversation.
type ChatFlags struct {
	Key    string
	Hosts  []string
	Target string
	// User and Approvers are for answers to approvals.
	User      string
	Approvers []string
}

// Flags adds the flags.
func (c *ChatFlags) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.Key, "key", "cli:local", "gateway session key of the conversation")
	f.StringSliceVar(&c.Hosts, "host", nil, "host wanted for a new session; default: the profile's default hosts")
	f.StringVar(&c.Target, "target", "local", "target in which a new session's commands run")
}

// Config returns the chat's configuration.
func (c *ChatFlags) Config(surface string, log *slog.Logger) (gateway.Config, error) {
	cfg := gateway.Config{
		Key: events.GatewaySessionKey(c.Key), Source: "cli", Surface: surface,
		Target: events.TargetName(c.Target), Logger: log,
	}
	if cfg.User = events.PlatformUser(c.User); cfg.User == "" {
		cfg.User = localUser()
	}
	for _, u := range c.Approvers {
		cfg.Approvers = append(cfg.Approvers, events.PlatformUser(u))
	}
	if c.Key == "" {
		return cfg, cli.Usagef("--key is empty")
	}
	if err := cfg.Target.Validate(); err != nil {
		return cfg, &cli.UsageError{Err: err}
	}
	for _, h := range c.Hosts {
		name := events.PrincipalName(h)
		if err := name.Validate(); err != nil {
			return cfg, &cli.UsageError{Err: err}
		}
		cfg.Hosts = append(cfg.Hosts, name)
	}
	return cfg, nil
}

// ApprovalFlags adds the flags of who answers approvals, for a chat at which no operator
// sits.
func (c *ChatFlags) ApprovalFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.User, "user", "", "who sits at the conversation, for /approve and /deny; default: local: and the login name")
	f.StringSliceVar(&c.Approvers, "approver", nil, "who may approve commands of a new session, e.g. local:alice")
}

// localUser names the person of this process; empty, which no session lists, if the system
// does not say.
func localUser() events.PlatformUser {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return events.PlatformUser("local:" + u.Username)
}
