package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
	"keryx/internal/broker"
	"keryx/internal/bustest"
)

func streamAPI(t *testing.T, b *broker.Broker) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(bustest.System(t, b))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func streamConfig(t *testing.T, js jetstream.JetStream, name string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatalf("stream %s: %v", name, err)
	}
	return s.CachedInfo().Config
}

func TestStreamsAreConfiguredAsTheLogNeedsThem(t *testing.T) {
	t.Parallel()
	js := streamAPI(t, bustest.Broker(t))
	log := streamConfig(t, js, events.StreamLog)
	if log.Storage != jetstream.FileStorage || log.Discard != jetstream.DiscardNew || !log.AllowAtomicPublish ||
		!log.AllowDirect || log.DenyPurge || log.DenyDelete || log.MaxAge != 0 || log.MaxMsgsPerSubject > 0 || log.NoAck ||
		log.PersistMode != jetstream.DefaultPersistMode {
		t.Errorf("log: %+v", log)
	}
	if log.RePublish == nil || log.RePublish.Source != "kx.log.>" || log.RePublish.Destination != "kx.live.>" {
		t.Errorf("log is republished as %+v", log.RePublish)
	}
	out := streamConfig(t, js, events.StreamOut)
	if !out.NoAck || out.PersistMode != jetstream.AsyncPersistMode || out.MaxMsgsPerSubject != 1024 || out.MaxAge <= 0 ||
		out.MaxBytes <= 0 || out.RePublish != nil {
		t.Errorf("output: %+v", out)
	}
	dead := streamConfig(t, js, events.StreamDead)
	if dead.MaxMsgsPerSubject != 1000 || dead.MaxBytes != 64<<20 || dead.MaxAge != 7*24*time.Hour || dead.RePublish != nil {
		t.Errorf("dead letters: %+v", dead)
	}
	if total := out.MaxBytes + dead.MaxBytes; total > broker.DefaultMaxStore/2 {
		t.Errorf("output and dead letters may take %d of %d bytes", total, broker.DefaultMaxStore)
	}
	if imp := streamConfig(t, js, events.StreamImport); imp.Storage != jetstream.FileStorage || imp.RePublish != nil {
		t.Errorf("imports: %+v", imp)
	}
	if snap := streamConfig(t, js, events.StreamSnap); snap.MaxMsgsPerSubject != 1 || snap.PersistMode != jetstream.AsyncPersistMode {
		t.Errorf("snapshots: %+v", snap)
	}
	leases := streamConfig(t, js, "KV_kx_leases")
	if leases.MaxMsgsPerSubject != 1 || !leases.AllowMsgTTL || leases.SubjectDeleteMarkerTTL <= 0 || leases.Storage != jetstream.FileStorage {
		t.Errorf("leases: %+v", leases)
	}
}

func TestLogIsRepublishedLiveButNamesAreNot(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	js, heard := streamAPI(t, b), listen(t, b, "kx.>")
	for _, subject := range []string{"kx.log.main.s", "kx.id.main.task_id.h"} {
		if _, err := js.Publish(t.Context(), subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"kx.log.main.s": 1, "kx.live.main.s": 1, "kx.id.main.task_id.h": 1}
	got := map[string]int{}
	for _, s := range heard() {
		got[s]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("heard %v, want %v", got, want)
	}
}

func TestLeasesAreRepublishedAndSoIsTheirExpiry(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	kv, err := streamAPI(t, b).KeyValue(t.Context(), events.BucketLeases)
	if err != nil {
		t.Fatal(err)
	}
	nc := bustest.Connect(t, b, bustest.Principal(t, b, "main", "p", events.RoleObserver))
	sub, err := nc.SubscribeSync(events.LeaseAll("main"))
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// The whole bucket shares one history, so a record's own time holds even below that
	// of the markers.
	if _, err := kv.Create(t.Context(), "main.target.t", []byte("held"), jetstream.KeyTTL(time.Second)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, want := range []string{"held", ""} {
		m, err := sub.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatalf("waiting for %q: %v", want, err)
		}
		if m.Subject != "kx.lease.main.target.t" || string(m.Data) != want {
			t.Errorf("heard %s %q, want %q", m.Subject, m.Data, want)
		}
	}
	if took := time.Since(began); took < 900*time.Millisecond || took > 5*time.Second {
		t.Errorf("the record expired after %v, want 1 s", took)
	}
}

func TestStreamChangedByOthersIsRepairedAtTheNextStart(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	js := streamAPI(t, b)
	changed := streamConfig(t, js, events.StreamOut)
	changed.MaxMsgsPerSubject, changed.NoAck = 5, false
	if _, err := js.UpdateStream(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	again := bustest.Broker(t, bustest.Dir(b.Dir()), log.option)
	if got := streamConfig(t, streamAPI(t, again), events.StreamOut); got.MaxMsgsPerSubject != 1024 || !got.NoAck {
		t.Errorf("not repaired: %+v", got)
	}
	if log.count("repaired") != 1 {
		t.Errorf("repairs reported: %d, want 1", log.count("repaired"))
	}
}

func TestStreamThatCannotBeRepairedIsRefusedByName(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	js := streamAPI(t, b)
	if err := js.DeleteStream(t.Context(), events.StreamSnap); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name:     events.StreamSnap,
		Subjects: []string{events.PatternSnap}, Storage: jetstream.FileStorage,
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := broker.Start(t.Context(), broker.Config{Dir: b.Dir()})
	if err == nil {
		_ = again.Stop(t.Context())
		t.Fatal("served a stream of another persist mode")
	}
	var wrong *broker.StreamError
	if !errors.As(err, &wrong) || wrong.Stream != events.StreamSnap {
		t.Errorf("got %v, want a StreamError of %s", err, events.StreamSnap)
	}
}

func TestFullLogRefusesAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t, func(c *broker.Config) { c.MaxStore, c.Sync = broker.MinMaxStore, broker.SyncInterval })
	js := streamAPI(t, b)
	body := bytes.Repeat([]byte("x"), 1<<20)
	var err error
	for range broker.MinMaxStore >> 20 {
		if _, err = js.Publish(t.Context(), "kx.log.main.s", body); err != nil {
			break
		}
	}
	var full *jetstream.APIError
	if !errors.As(err, &full) {
		t.Fatalf("a full log answers %v, want a refusal", err)
	}
	t.Logf("a full log answers: %v", full)
	if _, err := js.Publish(t.Context(), "kx.dead.main.p", []byte("x")); err != nil {
		t.Errorf("dead letters while the log is full: %v", err)
	}
	if _, err := js.Publish(t.Context(), "$KV.kx_leases.main.target.t", []byte("x")); err != nil {
		t.Errorf("leases while the log is full: %v", err)
	}
}

// stored waits until the stream has processed a mark, and so all that came before it.
func stored(t *testing.T, b *broker.Broker, by *nats.Conn, out string) jetstream.Stream {
	t.Helper()
	if err := errors.Join(by.Publish(out, []byte("mark")), by.Flush()); err != nil {
		t.Fatal(err)
	}
	s, err := streamAPI(t, b).Stream(t.Context(), events.StreamOut)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the mark is stored", func() bool {
		_, err := s.GetLastMsgForSubject(t.Context(), out)
		return err == nil
	})
	return s
}

func TestFloodOfOneExecEvictsNoOutputOfAnother(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc := bustest.Connect(t, b, bustest.Principal(t, b, "main", "x1", events.RoleExecutor))
	chunk := bytes.Repeat([]byte("o"), 4096)
	const quiet, loud = "kx.out.main.x1.s.quiet", "kx.out.main.x1.s.loud"
	for range 10 {
		if err := nc.Publish(quiet, chunk); err != nil {
			t.Fatal(err)
		}
	}
	const flood = 3 * broker.OutPerExec
	for range flood {
		if err := nc.Publish(loud, chunk); err != nil {
			t.Fatal(err)
		}
	}
	s := stored(t, b, nc, "kx.out.main.x1.s.mark")
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("kx.out.>"))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.State.Subjects; got[quiet] != 10 || got[loud] != broker.OutPerExec {
		t.Errorf("kept %v, want 10 chunks of the quiet exec and %d of the loud one", got, broker.OutPerExec)
	}
	if first, err := s.GetMsg(t.Context(), 1); err != nil || first.Subject != quiet {
		t.Errorf("the first chunk of the quiet exec is gone: %v", err)
	}
}

func TestChunkBeyondTheLimitIsHeardLiveButNotKept(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	nc := bustest.Connect(t, b, bustest.Principal(t, b, "main", "x1", events.RoleExecutor))
	heard := listen(t, b, "kx.out.main.x1.s.big")
	if err := nc.Publish("kx.out.main.x1.s.big", make([]byte, events.MaxChunk+events.MaxHeaders+1)); err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish("kx.out.main.x1.s.fits", make([]byte, events.MaxChunk)); err != nil {
		t.Fatal(err)
	}
	s := stored(t, b, nc, "kx.out.main.x1.s.mark")
	if _, err := s.GetLastMsgForSubject(t.Context(), "kx.out.main.x1.s.big"); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("a chunk beyond the limit: %v, want that it is not there", err)
	}
	if _, err := s.GetLastMsgForSubject(t.Context(), "kx.out.main.x1.s.fits"); err != nil {
		t.Errorf("the largest chunk: %v", err)
	}
	if got := heard(); len(got) != 1 {
		t.Errorf("heard %v live", got)
	}
}

func TestConsumersOfAStreamAreNotLimitedToAThousand(t *testing.T) {
	t.Parallel()
	b := bustest.Broker(t)
	s, err := streamAPI(t, b).Stream(t.Context(), events.StreamLog)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1001 {
		if _, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{MemoryStorage: true, AckPolicy: jetstream.AckNonePolicy}); err != nil {
			t.Fatalf("consumer %d: %v", i+1, err)
		}
	}
}
