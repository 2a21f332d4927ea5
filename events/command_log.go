package events

// LogPage asks for a scope's events from a sequence on. The answer is a page of
// messages as stored, then [LogPageEnd] with the end marker.
type LogPage struct {
	Scope Scope `json:"scope"`
	// From is the first sequence wanted; 0 for the beginning.
	From Sequence `json:"from,omitempty"`
	// Limit is 1 to 1,000; default 1,000.
	Limit int `json:"limit,omitempty"`
}

// LogPageEnd ends a page of the log.
type LogPageEnd struct {
	// Next is where to go on; 0 when the page reached the tip.
	Next Sequence `json:"next,omitempty"`
	// First is the sequence of the oldest kept event; older ones were cut.
	First Sequence `json:"first,omitempty"`
	Tip   Tip      `json:"tip"`
}

// Tip is the newest event of a scope.
type Tip struct {
	Scope    Scope    `json:"scope"`
	Sequence Sequence `json:"sequence"`
	Ordinal  Ordinal  `json:"ordinal"`
}

// LogTips asks for the tips of scopes, at most 1,000; with none named, for those of
// all scopes of the profile, in pages. Answer: [Tips].
type LogTips struct {
	// Scopes are those asked for; none means all of the profile.
	Scopes []Scope `json:"scopes,omitempty"`
	// After is the last scope of the page before; pages are in scope order.
	After Scope `json:"after,omitempty"`
}

// Tips answers [LogTips]. A scope without events is left out.
type Tips struct {
	Tips []Tip `json:"tips"`
	More bool  `json:"more,omitempty"`
}
