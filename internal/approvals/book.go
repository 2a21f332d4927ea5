package approvals

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"keryx/events"
)

const (
	// Life is how long an approval may be answered and used (design section 8).
	Life = 5 * time.Minute
	// MaxOpen is how many approvals of a session may be open at once.
	MaxOpen = 16
	// MaxEnded is how many ended approvals of a session are remembered.
	MaxEnded = 256
)

// Book holds the approvals of a session, folded from events. The zero value is empty. It
// is not safe for concurrent use.
//
// The folds ignore what does not fit the state, so that a log says the same however often
// a part of it is told.
type Book struct {
	byID  map[events.ApprovalID]events.ApprovalView
	open  []events.ApprovalID // oldest first
	ended []events.ApprovalID // by time of their end
}

// Get returns an approval that is open, or has ended and is remembered.
func (b *Book) Get(id events.ApprovalID) (events.ApprovalView, bool) {
	v, ok := b.byID[id]
	return v, ok
}

// Open returns the approvals that have not ended, oldest first.
func (b *Book) Open() []events.ApprovalView {
	out := make([]events.ApprovalView, 0, len(b.open))
	for _, id := range b.open {
		out = append(out, b.byID[id])
	}
	return out
}

// Ended returns those that have ended and are remembered, oldest first.
func (b *Book) Ended() []events.ApprovalView {
	out := make([]events.ApprovalView, 0, len(b.ended))
	for _, id := range b.ended {
		out = append(out, b.byID[id])
	}
	return out
}

// Expired returns the first open approval whose time is over.
func (b *Book) Expired(now time.Time) (events.ApprovalView, bool) {
	for _, id := range b.open {
		if v := b.byID[id]; !now.Before(v.ExpiresAt) {
			return v, true
		}
	}
	return events.ApprovalView{}, false
}

// NextExpiry returns when the next open approval expires; zero when none is open.
func (b *Book) NextExpiry() time.Time {
	var next time.Time
	for _, id := range b.open {
		if at := b.byID[id].ExpiresAt; next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// Answerable returns an approval that waits for an answer now. Its errors: no such
// approval, answered before, expired, or invalidated.
func (b *Book) Answerable(id events.ApprovalID, now time.Time) (events.ApprovalView, error) {
	v, ok := b.byID[id]
	switch {
	case !ok:
		return v, events.Errorf(events.CodeUnknownApproval, "no approval has the id %s", id)
	case v.State != events.ApprovalStatePending:
		return v, over(v)
	case !now.Before(v.ExpiresAt):
		return v, expired(v)
	}
	return v, nil
}

// Usable returns an error unless an approval may be used now for the action of a digest:
// it was granted, not used, is in time, and is for exactly that action.
func (b *Book) Usable(id events.ApprovalID, digest events.ActionDigest, now time.Time) error {
	v, ok := b.byID[id]
	switch {
	case !ok:
		return events.Errorf(events.CodeUnknownApproval, "no approval has the id %s", id)
	case v.State == events.ApprovalStatePending:
		return events.Errorf(events.CodeWrongState, "approval %s was not answered", id)
	case v.State != events.ApprovalStateGranted:
		return over(v)
	case !now.Before(v.ExpiresAt):
		return expired(v)
	case v.Digest != digest:
		return events.Errorf(events.CodeStaleApproval, "approval %s is for another action", id)
	}
	return nil
}

func expired(v events.ApprovalView) *events.Error {
	return events.Errorf(events.CodeApprovalExpired, "approval %s was to be used before %s", v.Approval, v.ExpiresAt.UTC().Format(time.RFC3339))
}

// over says how an approval stands that can be neither answered nor used.
func over(v events.ApprovalView) *events.Error {
	e := events.Errorf(events.CodeAlreadyAnswered, "approval %s was %s by %s", v.Approval, answer(v.State), v.By)
	switch v.State {
	case events.ApprovalStateExpired:
		e = expired(v)
	case events.ApprovalStateInvalidated:
		e = events.Errorf(events.CodeStaleApproval, "approval %s ended: %s", v.Approval, v.Reason)
	}
	return e.With("state", string(v.State))
}

func answer(s events.ApprovalState) string {
	if s == events.ApprovalStateConsumed {
		return "granted and used"
	}
	return string(s)
}

// Request folds a request.
func (b *Book) Request(v events.ApprovalView) {
	if _, known := b.byID[v.Approval]; known || v.Approval == "" {
		return
	}
	if b.byID == nil {
		b.byID = make(map[events.ApprovalID]events.ApprovalView)
	}
	v.State = events.ApprovalStatePending
	b.byID[v.Approval] = v
	b.open = append(b.open, v.Approval)
}

// Grant folds somebody's yes.
func (b *Book) Grant(id events.ApprovalID, by events.PrincipalName, user events.PlatformUser, at time.Time) {
	v, ok := b.byID[id]
	if !ok || v.State != events.ApprovalStatePending {
		return
	}
	v.State, v.By, v.PlatformUser, v.AnsweredAt = events.ApprovalStateGranted, by, user, at
	b.byID[id] = v
}

// Deny folds somebody's no.
func (b *Book) Deny(id events.ApprovalID, by events.PrincipalName, user events.PlatformUser, reason string, at time.Time) {
	v, ok := b.byID[id]
	if !ok || v.State != events.ApprovalStatePending {
		return
	}
	v.By, v.PlatformUser, v.AnsweredAt = by, user, at
	b.end(v, events.ApprovalStateDenied, reason)
}

// Consume folds the use of a granted approval.
func (b *Book) Consume(id events.ApprovalID) {
	if v, ok := b.byID[id]; ok && v.State == events.ApprovalStateGranted {
		b.end(v, events.ApprovalStateConsumed, "")
	}
}

// Expire folds the end of an approval's time.
func (b *Book) Expire(id events.ApprovalID, at time.Time) {
	b.drop(id, events.ApprovalStateExpired, "nobody approved it in time", at)
}

// Invalidate folds the end of an approval whose action changed or is not wanted any more.
func (b *Book) Invalidate(id events.ApprovalID, reason string, at time.Time) {
	b.drop(id, events.ApprovalStateInvalidated, reason, at)
}

func (b *Book) drop(id events.ApprovalID, state events.ApprovalState, reason string, at time.Time) {
	v, ok := b.byID[id]
	if !ok || v.State != events.ApprovalStatePending && v.State != events.ApprovalStateGranted {
		return
	}
	v.AnsweredAt = at
	b.end(v, state, reason)
}

// end moves an approval to the ended ones, of which the newest are remembered.
func (b *Book) end(v events.ApprovalView, state events.ApprovalState, reason string) {
	v.State, v.Reason = state, strings.TrimSpace(reason)
	b.byID[v.Approval] = v
	b.open = slices.DeleteFunc(b.open, func(id events.ApprovalID) bool { return id == v.Approval })
	b.ended = append(b.ended, v.Approval)
	if len(b.ended) > MaxEnded {
		delete(b.byID, b.ended[0])
		b.ended = slices.Delete(b.ended, 0, 1)
	}
}

// kept is a book in a form that can be kept.
type kept struct {
	Known []events.ApprovalView `json:"known,omitempty"` // by id
	Open  []events.ApprovalID   `json:"open,omitempty"`
	Ended []events.ApprovalID   `json:"ended,omitempty"`
}

// MarshalJSON implements json.Marshaler: the whole book, for a snapshot.
func (b Book) MarshalJSON() ([]byte, error) {
	k := kept{Open: b.open, Ended: b.ended}
	for _, id := range slices.Sorted(maps.Keys(b.byID)) {
		k.Known = append(k.Known, b.byID[id])
	}
	return events.MarshalData(k)
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Book) UnmarshalJSON(doc []byte) error {
	var k kept
	if err := json.Unmarshal(doc, &k); err != nil {
		return err
	}
	*b = Book{open: k.Open, ended: k.Ended}
	for _, v := range k.Known {
		if b.byID == nil {
			b.byID = make(map[events.ApprovalID]events.ApprovalView, len(k.Known))
		}
		b.byID[v.Approval] = v
	}
	return nil
}
