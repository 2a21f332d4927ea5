package events

import "time"

// Verdict is what somebody thinks of a tool that is about to run.
type Verdict string

// What somebody thinks of a tool.
const (
	VerdictAllow Verdict = "allow"
	VerdictDeny  Verdict = "deny"
)

// ToolDefault says what happens to tools when not all who are asked answer in time.
type ToolDefault string

// What happens to tools without an answer.
const (
	ToolDefaultAuto  ToolDefault = "auto"  // deny if somebody was asked, allow if nobody is registered
	ToolDefaultAllow ToolDefault = "allow" // they run
	ToolDefaultDeny  ToolDefault = "deny"  // they do not
)

// Judge is a process that is asked before a tool runs.
type Judge struct {
	Principal PrincipalName `json:"principal"`
	Instance  Instance      `json:"instance"`
}

// PolicyAsked is a host's question whether a tool may run.
type PolicyAsked struct {
	// Question is the id of the command that asked.
	Question CommandID     `json:"question"`
	Turn     TurnID        `json:"turn,omitempty"`
	Host     PrincipalName `json:"host"`
	Tool     string        `json:"tool"`   // as the host calls it
	Digest   ActionDigest  `json:"digest"` // of what the tool is to do
	Names    Names         `json:"names"`
	// Judges are those who were registered then; the question is put to them.
	Judges []Judge `json:"judges,omitempty"`
	// Default is the verdict when one of them says nothing in time.
	Default Verdict `json:"default"`
	// ExpiresAt is when the default is taken, by the authority's clock.
	ExpiresAt time.Time `json:"expires_at"`
}

// PolicyVoted is what one of those asked said. A deny decides, an allow needs all others.
type PolicyVoted struct {
	Question CommandID     `json:"question"`
	By       PrincipalName `json:"by"`
	Instance Instance      `json:"instance"`
	Verdict  Verdict       `json:"verdict"`
	Reason   string        `json:"reason,omitempty"`
}

// PolicyAnswered is the verdict on a question, once.
type PolicyAnswered struct {
	Question CommandID `json:"question"`
	Verdict  Verdict   `json:"verdict"`
	Reason   string    `json:"reason"`
	// By is who denied; absent when all allowed or the default was taken.
	By PrincipalName `json:"by,omitempty"`
	// Defaulted is true when not everybody asked had answered.
	Defaulted bool `json:"defaulted,omitempty"`
}

// AskPolicy asks whether a tool may run. Sent by the attached host. Answer:
// [QuestionView], once there is a verdict; sent again with the same id it gets the same.
type AskPolicy struct {
	Session SessionID `json:"session"`
	Fence   Fence     `json:"fence"`
	Turn    TurnID    `json:"turn,omitempty"`
	Tool    string    `json:"tool"` // as the host calls it
	// Digest identifies what the tool is to do; its making is the host's business.
	Digest ActionDigest `json:"digest"`
	// Names are handed to those asked; absent ones are filled in by the bus.
	Names Names `json:"names,omitzero"`
	// TimeoutMS bounds the wait. 0: 2,000; 30,000 at most.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// VotePolicy answers a question. Sent by a process it was put to. Answer: [Done].
type VotePolicy struct {
	Session  SessionID `json:"session"`
	Question CommandID `json:"question"`
	Instance Instance  `json:"instance"`
	Verdict  Verdict   `json:"verdict"`
	Reason   string    `json:"reason,omitempty"`
}

// QuestionShow asks for a question by the id of the command that asked it, e.g. after a
// lost connection. Answer: [QuestionView].
type QuestionShow struct {
	Session  SessionID `json:"session"`
	Question CommandID `json:"question"`
}

// QuestionView is what is known of a question.
type QuestionView struct {
	Question CommandID `json:"question"`
	Session  SessionID `json:"session"`
	Tool     string    `json:"tool"` // as the host calls it
	// Verdict is absent while the question is open.
	Verdict   Verdict       `json:"verdict,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	By        PrincipalName `json:"by,omitempty"`        // who denied
	Defaulted bool          `json:"defaulted,omitempty"` // not everybody asked had answered
}

// PolicyQuestion is put to a registered process (kx.policy ... .ask). It answers with
// [VotePolicy].
type PolicyQuestion struct {
	Session    SessionID     `json:"session"`
	Epoch      Epoch         `json:"epoch"`
	Question   CommandID     `json:"question"`
	Turn       TurnID        `json:"turn,omitempty"`
	Host       PrincipalName `json:"host"`
	Tool       string        `json:"tool"` // as the host calls it
	Digest     ActionDigest  `json:"digest"`
	Names      Names         `json:"names"`
	DeadlineMS int64         `json:"deadline_ms"`
}
