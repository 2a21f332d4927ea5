package main

import (
	"reflect"
	"slices"
	"strings"

	"keryx/events"
)

const (
	ulid = `^[0-7][0-9A-HJKMNP-TV-Z]{25}$`
	slug = `^[a-z0-9][a-z0-9-]{0,62}$`
	// centuryMS is 100 years in milliseconds, far below where a time.Duration ends.
	centuryMS = 100 * 365 * 24 * 60 * 60 * 1000
)

// patterns are the forms of identifiers.
var patterns = map[reflect.Type]string{
	reflect.TypeFor[events.Profile]():       slug,
	reflect.TypeFor[events.TargetName]():    slug,
	reflect.TypeFor[events.TokenName]():     slug,
	reflect.TypeFor[events.AccountName]():   slug,
	reflect.TypeFor[events.CommandName]():   `^[a-z0-9][a-z0-9_-]{0,31}$`,
	reflect.TypeFor[events.PrincipalName](): `^[a-z0-9-]{1,63}$`,
	reflect.TypeFor[events.Scope]():         `^[A-Za-z0-9_-]{1,128}$`,
	reflect.TypeFor[events.Fence]():         `^[0-9]+\.[0-9]+$`,
	reflect.TypeFor[events.LeaseKey]():      `^[A-Za-z0-9_-]{1,128}\.[a-z]{1,32}\.[A-Za-z0-9_-]{1,128}$`,
	reflect.TypeFor[events.Type]():          `^keryx(\.[a-z0-9_]+)+$`,
	reflect.TypeFor[events.Instance]():      ulid,
	reflect.TypeFor[events.SessionID]():     ulid,
	reflect.TypeFor[events.TurnID]():        ulid,
	reflect.TypeFor[events.OfferID]():       ulid,
	reflect.TypeFor[events.ReceiptID]():     ulid,
	reflect.TypeFor[events.ExecID]():        ulid,
	reflect.TypeFor[events.CommandID]():     ulid,
	reflect.TypeFor[events.ApprovalID]():    ulid,
	reflect.TypeFor[events.ActionDigest]():  `^[0-9a-f]{64}$`,
	reflect.TypeFor[events.ImportID]():      ulid,
	reflect.TypeFor[events.RunID]():         ulid,
	reflect.TypeFor[events.PackageKey]():    `^[a-z0-9][a-z0-9-]{0,50}-[0-9a-f]{12}$`,
	reflect.TypeFor[events.Revision]():      `^[0-9a-f]{64}$`,
}

// open are string types whose constants are not all the values there are.
var open = map[string]bool{"Code": true, "Type": true, "Scope": true, "PrincipalName": true}

// limit bounds what the field called name of a struct may hold.
func limit(structure, name string, s object) {
	switch s["type"] {
	case "integer":
		limitNumber(structure, name, s)
	case "string":
		if s["enum"] == nil && s["pattern"] == nil {
			limitText(structure, name, s)
		}
	case "array":
		if slices.Contains(nonEmpty, structure+"."+name) {
			s["minItems"] = 1
		}
	}
}

func limitNumber(structure, name string, s object) {
	switch {
	case structure == "ExecExited" && name == "exit_code":
		s["minimum"], s["maximum"] = -1, 255
	case name == "percent":
		s["maximum"] = 100
	case name == "step", name == "total", name == "malformed":
		s["maximum"] = 1_000_000
	case structure == "SetupEnd" && name == "exit_code":
		s["minimum"], s["maximum"] = -1, 255
	case structure == "PTYSize":
		s["minimum"], s["maximum"] = 1, events.MaxPTYSize
	case strings.HasSuffix(name, "_ms"):
		s["maximum"] = centuryMS
	case name == "limit":
		s["maximum"] = 1000
	case name == "epoch":
		s["minimum"], s["maximum"] = 1, 1<<31-1
	case name == "pid":
		s["minimum"] = 1
	case structure == "TargetLimits":
		s["minimum"] = 0
	}
}

var (
	// nonEmpty are lists that hold something.
	nonEmpty = []string{"ExecSpec.argv", "TargetCheck.command", "ApprovalRule.argv_prefix"}

	ids   = []string{"gateway_session_key", "stored_session_id", "runtime_session_id", "session_id", "task_id", "to", "idempotency_key", "key"}
	lines = []string{"home", "source", "surface", "reason", "cwd", "shell", "runtime_dir", "platform_user"}
)

func limitText(structure, name string, s object) {
	switch {
	case name == "to", name == "tool":
		s["minLength"], s["maxLength"] = 1, 1024
	case slices.Contains(ids, name):
		s["maxLength"] = 1024
	case slices.Contains(lines, name):
		s["maxLength"] = 4096
	case strings.HasPrefix(structure, "Command") && (name == "surfaces" || name == "help"):
		s["maxLength"] = 256
	case structure == "FindSession":
		s["minLength"], s["maxLength"] = 1, 1024
	case name == "sha256", name == "content", name == "schemas", name == "body_digest", name == "digest":
		s["pattern"] = `^[0-9a-f]{64}$`
	}
}
