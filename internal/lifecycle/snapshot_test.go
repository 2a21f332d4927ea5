package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"keryx/events"
	"keryx/internal/idle"
	"keryx/internal/lifecycle"
)

// kept writes a state and reads it back.
func kept(tb testing.TB, s *lifecycle.State) lifecycle.State {
	tb.Helper()
	b, err := events.MarshalData(s)
	if err != nil {
		tb.Fatalf("write snapshot: %v", err)
	}
	var out lifecycle.State
	if err := json.Unmarshal(b, &out); err != nil {
		tb.Fatalf("read snapshot: %v", err)
	}
	return out
}

// alike compares states field by field; an answer by its bytes, which is all there is of
// one that was read back, and nothing by nothing, however it is made.
var alike = cmp.Options{everything, cmpopts.EquateEmpty(), cmp.FilterPath(func(p cmp.Path) bool {
	return p.Last().Type() == reflect.TypeFor[any]()
}, cmp.Transformer("answer", func(v any) string {
	if raw, ok := v.(events.Raw); ok {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}))}

func TestASnapshotAndTheEventsAfterItAreTheWholeLog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(t, rt)
		var s lifecycle.State
		n := 0
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			m.step()
			for ; n < len(m.records); n++ {
				if err := lifecycle.Fold(&s, m.records[n]); err != nil {
					rt.Fatal(err)
				}
			}
			if rapid.IntRange(0, 3).Draw(rt, "snapshot") == 0 {
				s = kept(rtb{t, rt}, &s)
			}
			if diff := cmp.Diff(m.state, s, alike); diff != "" {
				rt.Fatalf("after %d events (-whole log +snapshot and rest):\n%s", n, diff)
			}
		}
		checkOwedAlike(rt, m.ledger, s)
	})
}

// A new field that a snapshot does not keep fails here, whether or not the machine above
// comes to give it a value.
func TestASnapshotKeepsEveryField(t *testing.T) {
	t.Parallel()
	var s lifecycle.State
	fill(reflect.ValueOf(&s).Elem(), new(int), 0)
	if diff := cmp.Diff(s, kept(t, &s), alike); diff != "" {
		t.Errorf("(-state +read back):\n%s", diff)
	}
	var empty lifecycle.State
	if diff := cmp.Diff(empty, kept(t, &empty), alike); diff != "" {
		t.Errorf("the zero state (-state +read back):\n%s", diff)
	}
}

// A long session keeps little of its past in memory, and its history keeps all.
func TestOfALongPastOnlyTheNewestIsKept(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.register(events.Policy{})
	f := l.attach()
	const n = idle.KeptReceipts + 20
	var turns []events.TurnID
	var receipts []events.ReceiptID
	for i := range n {
		receipts = append(receipts, l.submit(fmt.Sprint(i)).ID)
		turns = append(turns, l.accept(f))
		l.end(f, turns[i], events.OutcomeCompleted)
	}
	keyed := do[events.Receipt](l, gw1, events.Submit{To: "k1", IdempotencyKey: "once"})
	for i := range n {
		turn := l.accept(f)
		l.end(f, turn, events.OutcomeCompleted)
		l.submit(fmt.Sprint(i))
	}
	h := lifecycle.History()
	for _, r := range l.records {
		if err := lifecycle.Fold(&h, r); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := l.state.Receipt(receipts[0]); ok {
		t.Error("the first receipt is still in memory")
	}
	if _, ok := l.state.TurnEntry(turns[0]); ok {
		t.Error("the first turn is still in memory")
	}
	if r, ok := h.Receipt(receipts[0]); !ok || r.State != events.StateSettled || r.Turn != turns[0] {
		t.Errorf("the history has the first receipt as %+v", r)
	}
	if e, ok := h.TurnEntry(turns[0]); !ok || e.Outcome != events.OutcomeCompleted {
		t.Errorf("the history has the first turn as %+v", e)
	}
	if again := do[events.Receipt](l, gw1, events.Submit{To: "k1", IdempotencyKey: "once"}); again.ID != keyed.ID {
		t.Errorf("the key leads to %s, want %s", again.ID, keyed.ID)
	}
	l.after(lifecycle.AnswerLife + time.Minute)
	do[events.Receipt](l, gw1, events.Submit{To: "k1", IdempotencyKey: "another"})
	if _, ok := l.state.Receipt(keyed.ID); ok {
		t.Error("a receipt is in memory only for a key that is too old")
	}
	turn, receipt, _ := lifecycle.Mentions(&l.state, events.End{Turn: turns[0]})
	if turn != turns[0] || receipt != "" {
		t.Errorf("a report of the first turn mentions %q, %q", turn, receipt)
	}
}

// fill gives every field under v a value that is not zero. Maps get one key, so that
// what is kept as a list has its place; lists of keys beside a map get the same.
func fill(v reflect.Value, n *int, depth int) {
	v = writable(v)
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n, depth+1)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(start.Add(time.Duration(*n) * time.Second)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n, depth+1)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[events.Raw]() {
			v.Set(reflect.ValueOf(events.Raw(fmt.Sprintf(`{"n":%d}`, *n))))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n, depth+1)
	case reflect.Map:
		fillMap(v, n, depth)
	case reflect.Interface:
		v.Set(reflect.ValueOf(events.Raw(fmt.Sprintf(`{"n":%d}`, *n))))
	case reflect.String:
		v.SetString("key") // the same in maps and in lists of their keys
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64, reflect.Uint32, reflect.Uint8:
		v.SetUint(uint64(*n))
	default:
		panic(v.Kind().String() + " is new in a state")
	}
}

func fillMap(v reflect.Value, n *int, depth int) {
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	fill(key, n, depth+1)
	fill(value, n, depth+1)
	v.Set(reflect.MakeMap(v.Type()))
	v.SetMapIndex(key, value)
}

// writable lets an unexported field be set.
func writable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}
