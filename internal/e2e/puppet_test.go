package e2e_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"keryx/events"
)

// controlled is a puppet as the test sees it.
type controlled struct {
	t        *testing.T
	cmd      *exec.Cmd
	in       io.WriteCloser
	instance events.Instance
	answers  chan said
	told     chan said
	ended    chan struct{}
}

// puppet starts a process that acts as a principal, step by step.
func (b *bench) puppet(name string) *controlled {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	p := &controlled{t: b.t, cmd: exec.Command(self), answers: make(chan said, 16), told: make(chan said, 16), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVar+"=puppet", addrVar+"="+b.addr, credsVar+"="+b.creds(name))
	log := &lockedBuffer{}
	p.cmd.Stderr = log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		b.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go p.hear(out)
	b.t.Cleanup(func() {
		p.kill()
		if b.t.Failed() {
			b.t.Logf("puppet %s said: %s", name, log)
		}
	})
	p.instance = receive(b.t, "the puppet", p.answers).Instance
	return p
}

// hear sorts what the process says until it has ended.
func (p *controlled) hear(out io.Reader) {
	defer close(p.ended)
	for dec := json.NewDecoder(out); ; {
		var s said
		if dec.Decode(&s) != nil {
			_ = p.cmd.Wait() // how it ended is of no interest
			return
		}
		if s.Told != "" {
			p.told <- s
		} else {
			p.answers <- s
		}
	}
}

func (p *controlled) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// send lets the process send a command, under an id of its own.
func (p *controlled) send(t events.Type, id events.CommandID, lost bool, data any) {
	p.t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := json.NewEncoder(p.in).Encode(pull{Type: t, ID: id, Data: raw, Lost: lost}); err != nil {
		p.t.Fatal(err)
	}
}

// ask lets the process send a command and returns the answer to it.
func ask[A any](p *controlled, t events.Type, data any) (a A) {
	p.t.Helper()
	p.send(t, events.CommandID(events.NewID()), false, data)
	s := receive(p.t, "the answer to "+t.Short(), p.answers)
	if s.Status != events.StatusOK {
		p.t.Fatalf("%s was answered %s: %s", t.Short(), s.Status, s.Data)
	}
	if err := json.Unmarshal(s.Data, &a); err != nil {
		p.t.Fatal(err)
	}
	return a
}

// order waits for an order of this process and decodes it.
func order[O any](p *controlled, verb events.HostVerb) (o O) {
	p.t.Helper()
	for {
		if s := receive(p.t, "the order "+string(verb), p.told); s.Told == verb {
			if err := json.Unmarshal(s.Data, &o); err != nil {
				p.t.Fatal(err)
			}
			return o
		}
	}
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("waited 30 s for %s", what)
		panic("unreachable")
	}
}
