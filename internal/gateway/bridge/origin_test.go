package bridge

import (
	"testing"

	"pgregory.net/rapid"

	"keryx/events"
)

func TestAPlaceIsReadBackFromTheNamesMadeOfIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{":", "%3A", "a:b", "/", "C1", "1700.1"}))
		p := events.Place{Chat: text.Filter(func(s string) bool { return s != "" }).Draw(t, "chat"), Thread: text.Draw(t, "thread")}
		o := origins{kind: "stdio", account: "bot"}
		if got, ok := o.place(o.key(p)); !ok || got != p {
			t.Fatalf("key %q is read as %+v, %v; want %+v", o.key(p), got, ok, p)
		}
		key := o.idempotency(p, text.Draw(t, "message"))
		if got, ok := o.said(key); !ok || got != p {
			t.Fatalf("idempotency key %q is read as %+v, %v; want %+v", key, got, ok, p)
		}
		other := origins{kind: "stdio", account: "bot2"}
		if _, ok := other.place(o.key(p)); ok {
			t.Fatal("a key of another account is taken")
		}
		if _, ok := other.said(key); ok {
			t.Fatal("an idempotency key of another account is taken")
		}
	})
}
