package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"keryx/events"
)

// composed are the containers of docker-compose.yaml, made without Docker: each process is
// in a mount and a process namespace, with the files of its image as a root that cannot be
// written, as the user, and with the volumes, secrets, environment and arguments that the
// files say. The network is the machine's: names and ports are replaced, see [composed.real].
type composed struct {
	*bench
	services map[string]service
	image    string
	uid, gid int
	ports    map[string]string // what the compose file says -> what is used
}

// service is what the library of Docker Compose makes of a service.
type service struct {
	Build struct {
		Target string
	}
	Command  []string
	User     string
	ReadOnly bool `json:"read_only"`
	Volumes  []struct{ Type, Source, Target string }
	Secrets  []struct{ Source, Target string }
	Tmpfs    []string
	CapDrop  []string                `json:"cap_drop"`
	Check    struct{ Test []string } `json:"healthcheck"`
}

func compose(t *testing.T) *composed {
	t.Helper()
	c := &composed{bench: &bench{t: t, dir: t.TempDir(), addr: freeAddr(t)}, uid: 1000, gid: 1000}
	if os.Getuid() != 0 {
		c.uid, c.gid = os.Getuid(), os.Getgid()
	}
	c.image = filepath.Join(c.dir, "image")
	c.ports = map[string]string{"0.0.0.0:4222": c.addr, "nats://bus:4222": c.url(), "0.0.0.0:8443": freeAddr(t)}
	env := []string{fmt.Sprintf("KERYX_UID=%d", c.uid), fmt.Sprintf("KERYX_GID=%d", c.gid)}
	c.must(env, "../../tools/image-files", c.image)
	out := c.must(env, "go", "run", "-C", "../../tools/compose", ".", "../../docker-compose.yaml")
	var project struct{ Services map[string]service }
	if err := json.Unmarshal(out, &project); err != nil {
		t.Fatal(err)
	}
	c.services = project.Services
	for _, dir := range []string{"secrets", "volumes"} {
		c.own(filepath.Join(c.dir, dir), 0o700)
	}
	return c
}

// must runs a program to its success.
func (c *composed) must(env []string, name string, args ...string) []byte {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), &stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%s %v: %v\n%s", name, args, err, &stderr)
	}
	return out
}

// own makes a directory of the user of the containers.
func (c *composed) own(dir string, mode os.FileMode) {
	c.t.Helper()
	if err := os.MkdirAll(dir, mode); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Chown(dir, c.uid, c.gid); err != nil {
		c.t.Fatal(err)
	}
}

// stage are the instructions of a stage of the Dockerfile.
func (c *composed) stage(name string) (out [][]string) {
	c.t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		c.t.Fatal(err)
	}
	within := false
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if words[0] == "FROM" {
			within = words[len(words)-1] == name
		} else if within {
			out = append(out, words)
		}
	}
	if out == nil {
		c.t.Fatalf("the Dockerfile has no stage %s", name)
	}
	return out
}

// container is one service, ready to be run.
type container struct {
	service
	root       string
	env, entry []string
}

// build lays out the root of a service's image.
func (c *composed) build(name string) container {
	c.t.Helper()
	s, ok := c.services[name]
	if !ok {
		c.t.Fatalf("there is no service %s", name)
	}
	k := container{service: s, root: c.t.TempDir()}
	for _, words := range c.stage(s.Build.Target) {
		switch args := words[1:]; words[0] {
		case "COPY":
			c.copyInto(k.root, args)
		case "ENV":
			k.env = append(k.env, args...)
		case "ENTRYPOINT":
			if err := json.Unmarshal([]byte(strings.Join(args, "")), &k.entry); err != nil {
				c.t.Fatal(err)
			}
		case "ARG", "USER", "WORKDIR": // the compose file says the user, the arguments the directory
		default:
			c.t.Fatalf("this test does not know the instruction %v", words)
		}
	}
	return k
}

// copyInto does COPY [--chown=...] SOURCE TARGET; what is owned by the user are directories.
func (c *composed) copyInto(root string, args []string) {
	c.t.Helper()
	chown := strings.HasPrefix(args[0], "--chown=")
	if chown {
		args = args[1:]
	}
	from := filepath.Join(c.image, strings.TrimPrefix(args[0], "image/"))
	to := filepath.Join(root, args[1])
	dir := filepath.Dir(to)
	if strings.HasSuffix(args[0], "/") {
		from += "/."
		dir = to
	}
	c.must(nil, "mkdir", "-p", dir)
	c.must(nil, "cp", "-a", from, to)
	if chown {
		c.own(to, 0o755)
	}
}

// real replaces the names and ports of the containers' network.
func (c *composed) real(args []string) []string {
	c.t.Helper()
	out := make([]string, len(args))
	for i, arg := range args {
		for from, to := range c.ports {
			arg = strings.ReplaceAll(arg, from, to)
		}
		out[i] = arg
	}
	return out
}

// volume is the directory behind a volume or bind mount.
func (c *composed) volume(kind, source string) string {
	if kind == "bind" {
		return filepath.Join(c.dir, filepath.Base(source))
	}
	dir := filepath.Join(c.dir, "volumes", source)
	c.own(dir, 0o755)
	return dir
}

// enter is the script that mounts and goes into a container: what is mounted is gone with
// the namespace.
func (c *composed) enter(k container) string {
	c.t.Helper()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("set -e\nR=%s\nmount --bind $R $R\nmkdir -p $R/proc $R/dev", k.root)
	for _, v := range k.Volumes {
		line("mkdir -p $R%[2]s && mount --bind %[1]s $R%[2]s", c.volume(v.Type, v.Source), v.Target)
	}
	for _, s := range k.Secrets {
		line("touch $R%[2]s && mount --bind %[1]s $R%[2]s", filepath.Join(c.dir, "secrets", s.Source), s.Target)
	}
	for _, tmp := range k.Tmpfs {
		target, options, _ := strings.Cut(tmp, ":")
		line("mount -t tmpfs -o %s tmpfs $R%s", options, target)
	}
	line("mount --rbind /dev $R/dev\nmount -t proc proc $R/proc")
	if k.ReadOnly {
		line("mount -o remount,bind,ro $R")
	}
	as := ""
	if os.Getuid() == 0 {
		as = "--userspec=" + k.User + " --groups="
	}
	line("CHROOT=$(command -v chroot)\ncd /\nexec env -i %s \"$CHROOT\" %s $R \"$@\"", strings.Join(k.env, " "), as)
	return b.String()
}

// command is the way into a container.
func (c *composed) command(k container, args []string) []string {
	c.t.Helper()
	words := []string{"--mount", "--pid", "--fork"}
	if os.Getuid() != 0 {
		words = append(words, "--user", "--map-current-user", "--keep-caps")
	}
	return append(append(words, "sh", "-c", c.enter(k), "sh"), c.real(args)...)
}

// up starts a service and waits until its health check succeeds.
func (c *composed) up(name string) *process {
	c.t.Helper()
	k := c.build(name)
	// Each service has 127.0.0.1 to itself in its own container.
	c.ports["127.0.0.1:9090"] = freeAddr(c.t)
	p := c.startPath(nil, "", "unshare", c.command(k, append(k.entry, k.Command...))...)
	c.t.Cleanup(func() { c.kill(p) })
	if len(k.Check.Test) < 2 || k.Check.Test[0] != "CMD" {
		c.t.Fatalf("%s has no health check: %v", name, k.Check.Test)
	}
	check := c.command(k, k.Check.Test[1:])
	c.await(name+" to be healthy", 60*time.Second, func() bool {
		select {
		case <-p.done:
			c.t.Fatalf("%s has ended", name)
		default:
		}
		out, err := exec.CommandContext(c.t.Context(), "unshare", check...).Output()
		return err == nil && string(out) == "ok\n"
	})
	return p
}

// operate runs a command of the service operator.
func (c *composed) operate(args ...string) string {
	c.t.Helper()
	k := c.build("operator")
	return string(c.must(nil, "unshare", c.command(k, append(k.entry, args...))...))
}

// first is the first process of a running container, with which the others end.
func (c *composed) first(p *process) string {
	c.t.Helper()
	pids, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", p.cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(pids))
}

// kill ends a container, which unshare would leave behind.
func (c *composed) kill(p *process) {
	c.t.Helper()
	select {
	case <-p.done:
		return
	default:
	}
	if pid, err := strconv.Atoi(c.first(p)); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		p.exit(10 * time.Second)               // unshare ends with it
	}
}

// within runs a command of a running container's own program in it: docker compose exec.
func (c *composed) within(p *process, name string, args ...string) string {
	c.t.Helper()
	k := c.build(name)
	words := []string{"--target", c.first(p), "--mount", "--pid", "--root"}
	if os.Getuid() == 0 {
		words = append(words, fmt.Sprintf("--setuid=%d", c.uid), fmt.Sprintf("--setgid=%d", c.gid))
	} else {
		words = append(words, "--user", "--preserve-credentials")
	}
	words = append(words, k.entry...)
	words = append(words, args...)
	return string(c.must(k.env, "nsenter", words...))
}

// certify writes a certificate for localhost, and returns the pool that has it.
func (c *composed) certify() *x509.CertPool {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, b := range map[string][]byte{"api.crt": text, "api.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		file := filepath.Join(c.dir, "secrets", name)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			c.t.Fatal(err)
		}
		if err := os.Chown(file, c.uid, c.gid); err != nil {
			c.t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}

// TestWhatTheComposeFileSaysRuns starts the three processes as docker-compose.yaml and
// Dockerfile say, as an ordinary user on roots that cannot be written, and lets a message
// come in over HTTPS and a command run.
func TestWhatTheComposeFileSaysRuns(t *testing.T) {
	t.Parallel()
	c := compose(t)
	for name, s := range c.services {
		if s.User != fmt.Sprintf("%d:%d", c.uid, c.gid) || !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" {
			t.Errorf("%s runs as %s, read only: %v, without capabilities %v", name, s.User, s.ReadOnly, s.CapDrop)
		}
	}
	for name, role := range map[string]string{"runner": "executor", "shell": "host", "edge": "gateway"} {
		c.operate("user", "add", name, "--role", role, "--out", "/creds/"+name+".creds")
	}
	pool := c.certify()
	bus := c.up("bus")
	c.up("executor")
	c.up("gateway-bridge")
	secret := strings.TrimSpace(c.within(bus, "bus", "token", "add", "me", "--role", "gateway"))
	a := &https{c: c, secret: secret, client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}, DisableKeepAlives: true,
	}}}
	a.ask("POST", "/v1/sessions", `{"names":{"gateway_session_key":"web:me"},"policy":{"target":"local","hosts":["shell"]}}`, nil)
	var r events.Receipt
	a.ask("POST", "/v1/sessions/web:me/messages", `{"body":{"text":"id -u; pwd; touch /bin/x; echo kept > file; cat file"}}`, &r)
	c.await("the message to be settled", 30*time.Second, func() bool {
		a.ask("GET", "/v1/receipts/"+string(r.ID), "", &r)
		return r.State == events.StateSettled
	})
	var turn events.TurnView
	a.ask("GET", "/v1/turns/"+string(r.Turn), "", &turn)
	for _, want := range []string{fmt.Sprint(c.uid) + "\n/work\n", "/bin/x: Read-only file system", "kept"} {
		if !strings.Contains(turn.Reply+turn.Error, want) {
			t.Errorf("the reply has no %q: %q %s", want, turn.Reply, turn.Error)
		}
	}
}

// https is the HTTP API behind TLS.
type https struct {
	c      *composed
	secret string
	client *http.Client
}

func (a *https) ask(method, path, body string, answer any) {
	a.c.t.Helper()
	_, port, err := net.SplitHostPort(a.c.ports["0.0.0.0:8443"])
	if err != nil {
		a.c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(a.c.t.Context(), method, "https://localhost:"+port+path, strings.NewReader(body))
	if err != nil {
		a.c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.secret)
	r.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(r)
	if err != nil {
		a.c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		a.c.t.Fatalf("%s %s: %d %s (%v)", method, path, resp.StatusCode, text, err)
	}
	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			a.c.t.Fatal(err)
		}
	}
}
