package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"keryx/client"
	"keryx/cmd/internal/run"
	"keryx/events"
	"keryx/internal/cli"
	"keryx/internal/gateway/bridge"
	"keryx/internal/gateway/platform"
	"keryx/internal/gateway/stdio"
	"keryx/internal/gateway/webhook"
)

// Platforms are the accounts of a file of --platforms.
type Platforms struct {
	accounts []bridge.Config
	hooks    map[string]*webhook.Hook
}

// platformsFile is the file's form.
type platformsFile struct {
	Accounts []accountEntry `yaml:"accounts"`
}

type accountEntry struct {
	Name      events.AccountName     `yaml:"name"`
	Hosts     []events.PrincipalName `yaml:"hosts"`
	Target    events.TargetName      `yaml:"target"`
	Approvers []events.PlatformUser  `yaml:"approvers"`
	LeaseTTL  time.Duration          `yaml:"lease_ttl"`
	Stdio     *stdioEntry            `yaml:"stdio"`
	Webhook   *webhookEntry          `yaml:"webhook"`
}

type stdioEntry struct {
	Command []string `yaml:"command"`
	Dir     string   `yaml:"dir"`
	Env     []string `yaml:"env"`
}

type webhookEntry struct {
	SecretFiles       []string    `yaml:"secret_files"`
	GitHubSecretFiles []string    `yaml:"github_secret_files"`
	Reply             *replyEntry `yaml:"reply"`
}

type replyEntry struct {
	URL          string `yaml:"url"`
	SecretFile   string `yaml:"secret_file"`
	AllowPrivate bool   `yaml:"allow_private"`
}

// leaseLeast is the least that a lease's ttl can be (design section 6).
const leaseLeast = 2 * time.Second

// ReadPlatforms reads a file of accounts. Names of files in it are relative to it.
func ReadPlatforms(path string, log *slog.Logger) (*Platforms, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("--platforms: %w", err)}
	}
	var file platformsFile
	err = yaml.NewDecoder(f, yaml.Strict()).Decode(&file)
	if err := errors.Join(ignoreEOF(err), f.Close()); err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("--platforms %s: %w", path, err)}
	}
	if len(file.Accounts) == 0 {
		return nil, cli.Usagef("--platforms %s: no accounts are in it", path)
	}
	out := &Platforms{hooks: make(map[string]*webhook.Hook)}
	links := bridge.NewLinks()
	for i, e := range file.Accounts {
		cfg, err := out.account(e, filepath.Dir(path), log)
		if err != nil {
			return nil, &cli.UsageError{Err: fmt.Errorf("--platforms %s: accounts[%d]: %w", path, i, err)}
		}
		cfg.Links = links
		out.accounts = append(out.accounts, cfg)
	}
	return out, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (p *Platforms) account(e accountEntry, dir string, log *slog.Logger) (bridge.Config, error) {
	cfg := bridge.Config{
		Name: e.Name, TTL: e.LeaseTTL, Logger: log,
		Policy: events.Policy{Hosts: e.Hosts, Target: e.Target, Approvers: e.Approvers},
	}
	if err := e.Name.Validate(); err != nil {
		return cfg, err
	}
	for _, known := range p.accounts {
		if known.Name == e.Name {
			return cfg, fmt.Errorf("a second account is named %q", e.Name)
		}
	}
	if e.LeaseTTL != 0 && e.LeaseTTL < leaseLeast {
		return cfg, fmt.Errorf("account %s: lease_ttl %s is less than %s", e.Name, e.LeaseTTL, leaseLeast)
	}
	var err error
	switch {
	case (e.Stdio == nil) == (e.Webhook == nil):
		return cfg, fmt.Errorf("account %s: name one platform, stdio or webhook", e.Name)
	case e.Stdio != nil:
		cfg.Platform, err = e.Stdio.platform(e.Name, dir, log)
	default:
		var hook *webhook.Hook
		if hook, err = e.Webhook.platform(e.Name, dir, log); err == nil {
			cfg.Platform, p.hooks[string(e.Name)] = hook, hook
		}
	}
	return cfg, err
}

func (e *stdioEntry) platform(name events.AccountName, dir string, log *slog.Logger) (platform.Platform, error) {
	cfg := stdio.Config{Account: name, Command: e.Command, Env: e.Env, Dir: dir, Logger: log}
	if e.Dir != "" {
		cfg.Dir = beside(dir, e.Dir)
	}
	return stdio.New(cfg)
}

func (e *webhookEntry) platform(name events.AccountName, dir string, log *slog.Logger) (*webhook.Hook, error) {
	cfg := webhook.Config{Account: name, Logger: log}
	var err error
	if cfg.Secrets, err = secrets(dir, e.SecretFiles); err != nil {
		return nil, err
	}
	if cfg.GitHubSecrets, err = secrets(dir, e.GitHubSecretFiles); err != nil {
		return nil, err
	}
	if e.Reply != nil {
		secret, err := secrets(dir, []string{e.Reply.SecretFile})
		if err != nil {
			return nil, err
		}
		cfg.Reply = webhook.Endpoint{URL: e.Reply.URL, Secret: secret[0], AllowPrivate: e.Reply.AllowPrivate}
	}
	return webhook.New(cfg)
}

func beside(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// secrets reads files with a secret each, which nobody else may read.
func secrets(dir string, files []string) ([]string, error) {
	var out []string
	for _, name := range files {
		path := beside(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read secret: %w", err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("read secret %s (mode %04o): %w", path, info.Mode().Perm(), client.ErrLoosePermissions)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read secret: %w", err)
		}
		out = append(out, strings.TrimSpace(string(b)))
	}
	return out, nil
}

// Hooks are the handlers of requests that come in, by account.
func (p *Platforms) Hooks() map[string]http.Handler {
	out := make(map[string]http.Handler)
	for name, h := range p.hooks {
		out[name] = h
	}
	return out
}

// Principal serves the accounts.
func (p *Platforms) Principal(dial Dial) *run.Principal {
	return &run.Principal{Name: "platforms", Dial: dial, Serve: p.serve}
}

// serve runs every account until ctx ends or one of them is refused for good.
func (p *Platforms) serve(ctx context.Context, c *client.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(p.accounts))
	var serving sync.WaitGroup
	for _, cfg := range p.accounts {
		cfg.Conn = c
		account, err := bridge.New(cfg)
		if err != nil {
			errs <- err
			cancel()
			continue
		}
		serving.Go(func() {
			err := account.Run(ctx)
			if err != nil {
				cancel()
			}
			errs <- err
		})
	}
	serving.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	for _, h := range p.hooks {
		h.Close()
	}
	return errors.Join(all...)
}
