package events

// NameKind says what sort of external id a [Name] is.
type NameKind string

// The kinds of names that resolve to a session, in the order in which a bare
// string is looked up.
const (
	KindGatewayKey NameKind = "gateway_session_key"
	KindStored     NameKind = "stored_session_id"
	KindAgent      NameKind = "session_id"
	KindRuntime    NameKind = "runtime_session_id"
	KindTask       NameKind = "task_id"
)

// NameKinds lists the kinds kept as records of their own, in look-up order.
// A task id is found through the turn that carries it and has no record.
func NameKinds() []NameKind {
	return []NameKind{KindGatewayKey, KindStored, KindAgent, KindRuntime}
}

// Name is one external id of a session, its bytes as given.
type Name struct {
	Kind  NameKind `json:"kind"`
	Value string   `json:"value"` // the id itself
}

// Names are the external ids of a session. An empty field is unknown, never guessed.
type Names struct {
	GatewaySessionKey GatewaySessionKey `json:"gateway_session_key,omitempty"`
	StoredSessionID   StoredSessionID   `json:"stored_session_id,omitempty"`
	RuntimeSessionID  RuntimeSessionID  `json:"runtime_session_id,omitempty"`
	SessionID         AgentSessionID    `json:"session_id,omitempty"`
	TaskID            TaskID            `json:"task_id,omitempty"`
	Home              string            `json:"home,omitempty"`
	Source            string            `json:"source,omitempty"`
	Surface           string            `json:"surface,omitempty"`
}

// Records returns the names that are kept as records, in look-up order.
func (n Names) Records() []Name {
	var out []Name
	for _, r := range []Name{
		{KindGatewayKey, string(n.GatewaySessionKey)},
		{KindStored, string(n.StoredSessionID)},
		{KindAgent, string(n.SessionID)},
		{KindRuntime, string(n.RuntimeSessionID)},
	} {
		if r.Value != "" {
			out = append(out, r)
		}
	}
	return out
}

// NameRecord is the body of a kx.id record. The full name is compared on reading,
// so that two names of one hash never resolve to each other.
type NameRecord struct {
	Name
	Session SessionID     `json:"session"`
	Epoch   Epoch         `json:"epoch"` // epoch in which the name was given
	Owner   PrincipalName `json:"owner"` // who gave it
}
