package broker

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"keryx/events"
)

const (
	// OutPerExec is how many output chunks of one exec are kept.
	OutPerExec = 1024
	// DeadPerPrincipal is how many refused inputs of one principal are kept.
	DeadPerPrincipal = 1000
	// LeaseMarkerTTL is how long the marker of an expired lease record stays.
	LeaseMarkerTTL = time.Minute

	outMaxAge   = 7 * 24 * time.Hour
	deadMaxAge  = 7 * 24 * time.Hour
	deadBytes   = 64 << 20
	leaseBytes  = 16 << 20
	outMaxChunk = events.MaxChunk + events.MaxHeaders
	// dedupeWindow is the shortest the server takes. Nothing relies on message ids, and
	// a window is shared by all subjects of a stream: within it one principal's id could
	// hide another's chunk.
	dedupeWindow = 100 * time.Millisecond
)

// budget splits the store. Every stream has a share of its own, so that none can fill
// the disk that another needs: what is full is refused there and nowhere else.
type budget struct{ log, out, dead, imports, snap, leases int64 }

func budgetOf(maxStore int64) budget {
	b := budget{
		dead: min(deadBytes, maxStore/16), leases: min(leaseBytes, maxStore/16),
		imports: maxStore / 16, snap: maxStore / 16,
	}
	// Output and dead letters take half together, so the log gets the larger rest.
	b.out = maxStore/2 - b.dead
	b.log = maxStore - b.out - b.dead - b.imports - b.snap - b.leases
	return b
}

// streamConfigs returns the streams of the bus, the lease bucket among them.
func streamConfigs(maxStore int64) []jetstream.StreamConfig {
	b := budgetOf(maxStore)
	return []jetstream.StreamConfig{
		logStream(b.log), outStream(b.out), deadStream(b.dead),
		importStream(b.imports), snapStream(b.snap), leaseStream(b.leases),
	}
}

// logStream refuses new messages when full, and lives by whole subjects: it forgets
// only what is purged.
func logStream(maxBytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: events.StreamLog, Subjects: []string{events.PatternLog, events.PatternID},
		Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew, MaxBytes: maxBytes,
		MaxConsumers: -1, AllowDirect: true, AllowAtomicPublish: true, Duplicates: dedupeWindow,
		RePublish: &jetstream.RePublish{Source: events.PatternLog, Destination: events.PatternLive},
	}
}

// outStream answers nobody (principals publish to it), bounds what one exec may fill,
// and drops the oldest when full.
func outStream(maxBytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: events.StreamOut, Subjects: []string{events.PatternOut},
		Storage: jetstream.FileStorage, PersistMode: jetstream.AsyncPersistMode, NoAck: true,
		MaxMsgsPerSubject: OutPerExec, MaxMsgSize: outMaxChunk, MaxAge: outMaxAge, MaxBytes: maxBytes,
		Discard: jetstream.DiscardOld, MaxConsumers: -1, AllowDirect: true, Duplicates: dedupeWindow,
	}
}

func deadStream(maxBytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: events.StreamDead, Subjects: []string{events.PatternDead}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: DeadPerPrincipal, MaxAge: deadMaxAge, MaxBytes: maxBytes,
		Discard: jetstream.DiscardOld, MaxConsumers: -1, AllowDirect: true, Duplicates: dedupeWindow,
	}
}

func importStream(maxBytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: events.StreamImport, Subjects: []string{events.PatternImport}, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, MaxBytes: maxBytes, MaxConsumers: -1, AllowDirect: true,
		AllowAtomicPublish: true, Duplicates: dedupeWindow,
	}
}

// snapStream may lose its last writes: a snapshot is only ever a shortcut.
func snapStream(maxBytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: events.StreamSnap, Subjects: []string{events.PatternSnap},
		Storage: jetstream.FileStorage, PersistMode: jetstream.AsyncPersistMode, MaxMsgsPerSubject: 1,
		Discard: jetstream.DiscardOld, MaxBytes: maxBytes, MaxConsumers: -1, AllowDirect: true,
		Duplicates: dedupeWindow,
	}
}

// leaseStream is the bucket as the key-value layer wants it, with history 1 (else the
// server would raise a record's TTL to that of the markers).
func leaseStream(maxBytes int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + events.BucketLeases, Subjects: []string{events.PatternKVLeases},
		Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1, MaxBytes: maxBytes,
		MaxConsumers: -1, AllowDirect: true, AllowRollup: true, DenyDelete: true,
		AllowMsgTTL: true, SubjectDeleteMarkerTTL: LeaseMarkerTTL, Duplicates: 2 * time.Minute,
		RePublish: &jetstream.RePublish{Source: events.PatternKVLeases, Destination: events.PatternLease},
	}
}
