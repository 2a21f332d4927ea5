package events_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"keryx/events"
)

// Identifiers of the samples, told apart by their letters.
const (
	anInstance = "01JNSTANCE0000000000000000"
	aSession   = "01JSESS10N0000000000000000"
	aTurn      = "01JTVRN0000000000000000000"
	anOffer    = "01JFFER0000000000000000000"
	aReceipt   = "01JRECE1PT0000000000000000"
	anExec     = "01JEXEC0000000000000000000"
	anApproval = "01JAPPR0VA0000000000000000"
	aCommand   = "01JC0MMAND0000000000000000"
	aRun       = "01JRVN00000000000000000000"
	aDigest    = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
)

// samplesByType are values of types that mean one thing.
var samplesByType = map[reflect.Type]any{
	reflect.TypeFor[events.PrincipalName]():     events.PrincipalName("shell"),
	reflect.TypeFor[events.Instance]():          events.Instance(anInstance),
	reflect.TypeFor[events.SessionID]():         events.SessionID(aSession),
	reflect.TypeFor[events.Scope]():             events.Scope(aSession),
	reflect.TypeFor[events.TurnID]():            events.TurnID(aTurn),
	reflect.TypeFor[events.OfferID]():           events.OfferID(anOffer),
	reflect.TypeFor[events.ReceiptID]():         events.ReceiptID(aReceipt),
	reflect.TypeFor[events.ExecID]():            events.ExecID(anExec),
	reflect.TypeFor[events.ApprovalID]():        events.ApprovalID(anApproval),
	reflect.TypeFor[events.PlatformUser]():      events.PlatformUser("slack:U1"),
	reflect.TypeFor[events.ActionDigest]():      events.ActionDigest(aDigest),
	reflect.TypeFor[events.CommandID]():         events.CommandID(aCommand),
	reflect.TypeFor[events.ImportID]():          events.ImportID(anExec),
	reflect.TypeFor[events.FoundKind]():         events.FoundReceipt,
	reflect.TypeFor[events.Redaction]():         events.RedactRules,
	reflect.TypeFor[events.Profile]():           events.Profile("default"),
	reflect.TypeFor[events.Profile]():           events.Profile("default"),
	reflect.TypeFor[events.RunID]():             events.RunID(aRun),
	reflect.TypeFor[events.PackageKey]():        events.PackageKey("hello-3f9a8b7c12de"),
	reflect.TypeFor[events.Revision]():          events.Revision(aDigest),
	reflect.TypeFor[events.SetupState]():        events.SetupStateRunning,
	reflect.TypeFor[events.TargetName]():        events.TargetName("local"),
	reflect.TypeFor[events.TokenName]():         events.TokenName("ci"),
	reflect.TypeFor[events.AccountName]():       events.AccountName("bot"),
	reflect.TypeFor[events.GatewaySessionKey](): events.GatewaySessionKey("cli:local"),
	reflect.TypeFor[events.StoredSessionID]():   events.StoredSessionID("stored-1"),
	reflect.TypeFor[events.RuntimeSessionID]():  events.RuntimeSessionID("runtime-1"),
	reflect.TypeFor[events.AgentSessionID]():    events.AgentSessionID("agent-1"),
	reflect.TypeFor[events.TaskID]():            events.TaskID("task-1"),
	reflect.TypeFor[events.Epoch]():             events.Epoch(2),
	reflect.TypeFor[events.Sequence]():          events.Sequence(9007199254740993), // beyond what a float holds
	reflect.TypeFor[events.Ordinal]():           events.Ordinal(17),
	reflect.TypeFor[events.Fence]():             events.Fence{Generation: 1, Sequence: 42},
	reflect.TypeFor[events.LeaseKey]():          events.LeaseKey{Profile: "default", Kind: events.LeaseTarget, Name: "local"},
	reflect.TypeFor[events.Type]():              events.CmdSessionReset,
	reflect.TypeFor[events.Code]():              events.CodeForbidden,
	reflect.TypeFor[events.Raw]():               events.Raw(`{"z":12345678901234567890,"a":null}`),
	reflect.TypeFor[[]byte]():                   []byte("hello\n"),
	reflect.TypeFor[time.Time]():                noon,
	// What closed sets say.
	reflect.TypeFor[events.NameKind]():      events.KindGatewayKey,
	reflect.TypeFor[events.Capability]():    events.CapInterrupt,
	reflect.TypeFor[events.Outcome]():       events.OutcomeCompleted,
	reflect.TypeFor[events.ItemKind]():      events.ItemUser,
	reflect.TypeFor[events.Mode]():          events.ModeEnqueue,
	reflect.TypeFor[events.OnReset]():       events.OnResetCarry,
	reflect.TypeFor[events.Binding]():       events.BindSource,
	reflect.TypeFor[events.ItemState]():     events.StateSettled,
	reflect.TypeFor[events.Lifetime]():      events.LifetimeDurable,
	reflect.TypeFor[events.DetachReason]():  events.DetachRequested,
	reflect.TypeFor[events.Outlives]():      events.OutlivesEpoch,
	reflect.TypeFor[events.Cleanup]():       events.CleanupSwept,
	reflect.TypeFor[events.EnvMode]():       events.EnvExact,
	reflect.TypeFor[events.SessionStatus](): events.StatusRunning,
	reflect.TypeFor[events.TurnState]():     events.TurnRunning,
	reflect.TypeFor[events.LeaseState]():    events.LeaseHeld,

	reflect.TypeFor[events.CommandName]():     events.CommandName("deploy"),
	reflect.TypeFor[events.CommandField]():    events.FieldSurface,
	reflect.TypeFor[events.InvocationState](): events.InvocationFailed,

	reflect.TypeFor[events.OnLeaseLoss]():      events.OnLeaseLossKeep,
	reflect.TypeFor[events.ApprovalDecision](): events.ApprovalOnRequest,
	reflect.TypeFor[events.ApprovalState]():    events.ApprovalStateConsumed,
	reflect.TypeFor[events.ToolDefault]():      events.ToolDefaultDeny,
	reflect.TypeFor[events.Verdict]():          events.VerdictDeny,
	reflect.TypeFor[events.TokenState]():       events.TokenUsable,
	reflect.TypeFor[events.Role]():             events.RoleGateway,
}

// samplesByName are texts and numbers of fields whose type says nothing.
var samplesByName = map[string]any{
	"to": "cli:local", "text": "echo hello", "reply": "hello\n", "error": "exit status 1", "message": "the caller may not do this",
	"reason": "requested", "finalize_reason": "requested", "home": "/home/alice", "source": "cli", "surface": "terminal",
	"idempotency_key": "cli-1", "key": "cli-1", "body_digest": aDigest, "digest": aDigest, "sha256": aDigest, "value": "cli:local", "kind": "terminal",
	"name": "stdout", "cwd": "/srv", "shell": "/bin/sh", "signal": "SIGTERM", "waiting_for": "a host", "out_subject": "kx.out.default.local." + aSession + "." + anExec,
	"target": aSession, "argv": "echo", "env_unset": "LANG", "keys": "cli:local",
	"user": "alice", "command_prefix": "/usr/bin/env", "rows": 24, "cols": 80,
	"exit_code": 0, "pid": 4711, "left_pids": 4712, "limit": 100, "pending": 1, "background_running": 0, "turns": 3,
	"bytes": 6, "missing_bytes": 1, "ttl_ms": 15000, "in_ms": 60000, "lease_ttl_ms": 15000, "deadline_ms": 5000, "delay_ms": 1000, "duration_ms": 12,
	"timeout_ms": 60000, "grace_ms": 5000, "age_ms": 4000, "idle_ttl_ms": 3600000, "host_gone_ms": 60000,
	"generation": 1, "lost_messages": 2, "dropped": 2, "damaged": "stream KX_LOG: 1.blk", "access_epoch": 0, "stored": 7, "from": 3, "chunk.to": 4, "env_set": map[string]string{"LANG": "C"},
	"authoritative_env": "HTTPS_PROXY", "limits_unenforced": "pids", "runtime_dir": "/run/keryx", "command": "true", "argv_prefix": "rm",
	"cpu_milli": 1500, "memory_bytes": 536870912, "pids": 256,
	"policy_revision": "5f3c9e0a1b2d4c6e", "why": "the policy of target local", "stdin_bytes": 6, "tool": "bash",
	"offset": 4096, "redacted": 1, "content": aDigest, "schemas": aDigest,
	"raw_args": "v2 --now", "surfaces": "terminal",
	"events": 20, "chunks": 3, "id": aReceipt,
	"dir": "/srv/packages/hello", "version": "1.2.0", "needs": "tar", "help": "say hello", "packages": "hello",
	"step": 2, "total": 5, "percent": 40, "malformed": 1, "package": "hello",
	"chat": "C1", "thread": "1700.1", "cursor": "1700.1", "send": aTurn, "part": 1, "parts": 2, "attempt": 1,
	"path": "/to", "details": map[string]string{"host": "shell"},
}

// fill sets every field below v, so that a golden file shows all of them.
func fill(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	typ := v.Type()
	if s, ok := samplesByType[typ]; ok {
		v.Set(reflect.ValueOf(s))
		return
	}
	switch typ.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
		fill(t, v.Elem(), name)
	case reflect.Struct:
		fillStruct(t, v)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(typ, 1, 1))
		fill(t, v.Index(0), name)
	case reflect.Bool:
		v.SetBool(true)
	default:
		s, ok := samplesByName[name]
		if !ok {
			t.Fatalf("no sample for field %q of type %s", name, typ)
		}
		v.Set(reflect.ValueOf(s).Convert(typ))
	}
}

func fillStruct(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if v.Type() == reflect.TypeFor[events.ChunkRange]() && name == "to" {
			name = "chunk.to"
		}
		fill(t, v.Field(i), name)
	}
}
