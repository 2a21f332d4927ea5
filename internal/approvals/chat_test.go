package approvals_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"keryx/events"
	"keryx/internal/gateway"
)

// notices is a front that keeps what a person is told.
type notices struct {
	mu   sync.Mutex
	told []string
}

func (n *notices) Message(gateway.Message)    {}
func (n *notices) Started(gateway.Turn)       {}
func (n *notices) Piece(gateway.Turn, string) {}
func (n *notices) Ended(gateway.Ended)        {}
func (n *notices) State(gateway.State)        {}

func (n *notices) Notice(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = append(n.told, text)
}

func (n *notices) says(what string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Contains(strings.Join(n.told, "\n"), what)
}

// chatAs opens the stage's conversation for a person and shows it to a front.
func (s *stage) chatAs(user events.PlatformUser) (*gateway.Chat, *notices) {
	s.t.Helper()
	chat, err := gateway.Open(s.within(), gateway.Config{Conn: s.gw, Key: "k", User: user, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	front := &notices{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- chat.Run(ctx, front) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("chat: %v", err)
		}
	})
	return chat, front
}

func TestAPersonAtAChatIsToldAndAnswers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.execute("runner", asking(events.ApprovalAlways))
	chat, front := s.chatAs("chat:alice")
	if _, err := chat.Answer(s.within(), "", true); err == nil || !strings.Contains(err.Error(), "nothing waits") {
		t.Errorf("with nothing to answer: %v", err)
	}
	a, marker := s.touch()
	short := string(a.Approval)[len(a.Approval)-6:]
	s.until("the person to be told", func() bool { return front.says("/approve "+short) && front.says("op wants to run in local:") })
	if v, err := chat.Answer(s.within(), "", true); err != nil || v.PlatformUser != "chat:alice" || v.By != "gw" {
		t.Errorf("approved as %+v, %v", v, err)
	}
	if code := s.end(a.Exec); code != "" || marks(t, marker) != 1 {
		t.Errorf("refused as %q, ran %d times", code, marks(t, marker))
	}
	one, markOne := s.touch()
	two, _ := s.touch()
	if _, err := chat.Answer(s.within(), "", true); err == nil || !strings.Contains(err.Error(), "2 wait") {
		t.Errorf("with two to answer: %v", err)
	}
	if _, err := chat.Answer(s.within(), strings.ToLower(string(one.Approval)[20:])+" not today", false); err != nil {
		t.Errorf("by the end of its id: %v", err)
	}
	if _, err := chat.Answer(s.within(), string(two.Approval), true); err != nil {
		t.Errorf("by its id: %v", err)
	}
	s.until("the person to be told of the no", func() bool { return front.says("denied not today; nothing was started") })
	if code := s.end(one.Exec); code != events.CodeApprovalDenied || marks(t, markOne) != 0 {
		t.Errorf("the denied one was refused as %q", code)
	}
	if code := s.end(two.Exec); code != "" {
		t.Errorf("the approved one was refused as %q", code)
	}
}

func TestAPersonWhoIsNotListedAnswersNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.execute("runner", asking(events.ApprovalAlways))
	chat, _ := s.chatAs("chat:mallory")
	a, marker := s.touch()
	if _, err := chat.Answer(s.within(), "", true); events.CodeOf(err) != events.CodeForbidden {
		t.Errorf("approved: %v", err)
	}
	if v, err := s.op.Approval(s.within(), a.Approval); err != nil || v.State != events.ApprovalStatePending || marks(t, marker) != 0 {
		t.Errorf("it is %+v, %v", v, err)
	}
}
