package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// chatServer is a chat platform with the little API that integrations/js-plugin speaks.
type chatServer struct {
	mu      sync.Mutex
	updates []map[string]string
	said    map[string]string // send id to text
	order   []string
	again   int // sends that came again
	more    chan struct{}
}

func newChatServer(t *testing.T) (*chatServer, string) {
	t.Helper()
	c := &chatServer{said: make(map[string]string), more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /updates", c.poll)
	mux.HandleFunc("POST /send", c.send)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return c, s.URL
}

// write is a person's message.
func (c *chatServer) write(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.updates) + 1
	c.updates = append(c.updates, map[string]string{"cursor": strconv.Itoa(n), "id": fmt.Sprint("m", n), "chat": fmt.Sprint("C", n%3), "user": "ada", "text": text})
	close(c.more)
	c.more = make(chan struct{})
}

func (c *chatServer) poll(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.URL.Query().Get("after")) // none is 0
	for wait := time.After(time.Second); ; {
		c.mu.Lock()
		out, more := c.updates[min(after, len(c.updates)):], c.more
		c.mu.Unlock()
		if len(out) > 0 {
			_ = json.NewEncoder(w).Encode(out)
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		case <-wait:
			_, _ = w.Write([]byte("[]"))
			return
		}
	}
}

func (c *chatServer) send(w http.ResponseWriter, r *http.Request) {
	var m struct{ ID, Text string }
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.said[m.ID]; ok {
		c.again++
	} else {
		c.said[m.ID] = m.Text
		c.order = append(c.order, m.Text)
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"message": "p-" + m.ID})
}

func (c *chatServer) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.said)
}

func TestAnotherBridgeTakesAnAccountOverFromOneThatWasKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.serving()
	b.start("", "executor", "--url", b.url(), "--creds", b.creds("ex"))
	b.start("", "gateway-bridge", "--url", b.url(), "--creds", b.creds("sh"))
	chat, api := newChatServer(t)
	plugin, err := filepath.Abs("../../integrations/js-plugin/plugin.mjs")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.dir, "accounts.yaml")
	text := fmt.Sprintf("accounts:\n  - name: bot\n    hosts: [sh]\n    target: local\n    lease_ttl: 2s\n    stdio:\n      command: [node, %q]\n      env: [\"CHAT_API=%s\"]\n", plugin, api)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bridge := func() *process {
		return b.start("", "gateway-bridge", "--url", b.url(), "--creds", b.creds("gw"), "--platforms", file)
	}
	first := bridge()
	chat.write("echo 1")
	b.await("the first reply", 40*time.Second, func() bool { return chat.count() == 1 })
	bridge() // stands by
	n := 1
	for range 10 {
		n++
		chat.write(fmt.Sprint("echo ", n))
	}
	first.kill()
	killed := time.Now()
	for range 10 {
		n++
		chat.write(fmt.Sprint("echo ", n))
	}
	before := chat.count()
	b.await("the next bridge to say something", 30*time.Second, func() bool { return chat.count() > before })
	took := time.Since(killed).Round(time.Millisecond)
	t.Logf("the next bridge spoke after %s", took)
	if took > 6*time.Second { // the lease's ttl and a second, and time for the command on a busy machine
		t.Errorf("the next bridge spoke after %s", took)
	}
	b.await("all replies", 40*time.Second, func() bool { return chat.count() >= n })
	b.away(500 * time.Millisecond) // for one too many
	chat.mu.Lock()
	defer chat.mu.Unlock()
	seen := make(map[string]int)
	for _, text := range chat.order {
		seen[text]++
	}
	for i := 1; i <= n; i++ {
		if want := fmt.Sprintf("%d\n", i); seen[want]+seen[fmt.Sprint(i)] != 1 {
			t.Errorf("reply %d was said %d times, under ids of its own", i, seen[want]+seen[fmt.Sprint(i)])
		}
	}
	if chat.again > 1 {
		t.Errorf("%d parts came again under their ids, at most the one under way may", chat.again)
	}
}
