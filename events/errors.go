package events

import (
	"errors"
	"fmt"
)

// Code identifies an error for programs, the same on the bus, in the client, at
// the command line and over HTTP.
type Code string

// The error codes; [Codes] tells what each means and whether to try again.
const (
	CodeInvalid             Code = "invalid"
	CodeTooLarge            Code = "too_large"
	CodeUndecodable         Code = "undecodable"
	CodeUnknownCommand      Code = "unknown_command"
	CodeUnknownSession      Code = "unknown_session"
	CodeUnknownTurn         Code = "unknown_turn"
	CodeUnknownReceipt      Code = "unknown_receipt"
	CodeUnknownOffer        Code = "unknown_offer"
	CodeUnknownExec         Code = "unknown_exec"
	CodeUnknownTarget       Code = "unknown_target"
	CodeUnknownLease        Code = "unknown_lease"
	CodeUnknownToken        Code = "unknown_token"
	CodeUnknownPackage      Code = "unknown_package"
	CodeUnknownRun          Code = "unknown_run"
	CodeNoConsent           Code = "no_consent"
	CodeRevisionChanged     Code = "revision_changed"
	CodeSetupFailed         Code = "setup_failed"
	CodeNotInEffect         Code = "not_in_effect"
	CodeAmbiguousName       Code = "ambiguous_name"
	CodeNameTaken           Code = "name_taken"
	CodeUnauthenticated     Code = "unauthenticated"
	CodeForbidden           Code = "forbidden"
	CodeIdentityConflict    Code = "identity_conflict"
	CodeAlreadyImported     Code = "already_imported"
	CodeUnknownImport       Code = "unknown_import"
	CodeConflict            Code = "conflict"
	CodeAlreadyFinalized    Code = "already_finalized"
	CodeAlreadyAttached     Code = "already_attached"
	CodeAlreadyEnded        Code = "already_ended"
	CodeEpochEnded          Code = "epoch_ended"
	CodeStaleFence          Code = "stale_fence"
	CodeStaleSelection      Code = "stale_selection"
	CodeUnknownApproval     Code = "unknown_approval"
	CodeUnknownQuestion     Code = "unknown_question"
	CodeHandlerFailed       Code = "handler_failed"
	CodeUnknownInvocation   Code = "unknown_invocation"
	CodeAlreadyAnswered     Code = "already_answered"
	CodeStaleApproval       Code = "stale_approval"
	CodeApprovalDenied      Code = "approval_denied"
	CodeApprovalExpired     Code = "approval_expired"
	CodeTargetUnsupported   Code = "target_unsupported"
	CodeBusy                Code = "busy"
	CodeUnsupported         Code = "unsupported"
	CodeWrongState          Code = "wrong_state"
	CodeIdempotencyConflict Code = "idempotency_conflict"
	CodeTooOld              Code = "too_old"
	CodeQueueFull           Code = "queue_full"
	CodeLeaseHeld           Code = "lease_held"
	CodeLeaseLost           Code = "lease_lost"
	CodeLeaseRevoked        Code = "lease_revoked"
	CodeUnknownLetter       Code = "unknown_letter"
	CodeStoreFull           Code = "store_full"
	CodeStoreRegressed      Code = "store_regressed"
	CodeStoreDamaged        Code = "store_damaged"
	CodeStoreNewer          Code = "store_newer"
	CodeUnavailable         Code = "unavailable"
	CodeRateLimited         Code = "rate_limited"
	CodeTimeout             Code = "timeout"
	CodeLaunchFailed        Code = "launch_failed"
	CodeInternal            Code = "internal"

	CodeValidateFailed        Code = "validate_failed"
	CodeTargetClaimed         Code = "target_claimed"
	CodeLimitsUnenforceable   Code = "limits_unenforceable"
	CodeRuntimeDirMissing     Code = "runtime_dir_missing"
	CodeRuntimeDirForeign     Code = "runtime_dir_foreign"
	CodeRuntimeDirExposed     Code = "runtime_dir_exposed"
	CodeRuntimeDirSymlink     Code = "runtime_dir_symlink"
	CodeRuntimeDirTooLong     Code = "runtime_dir_too_long"
	CodeRuntimeDirUnsupported Code = "runtime_dir_unsupported"
)

// CodeInfo is one row of the error table.
type CodeInfo struct {
	Code    Code
	Meaning string
	// Retryable: the same command, sent again later, may succeed.
	Retryable bool
	// SafeToRetry: sending it again with the same id cannot do the work twice.
	SafeToRetry bool
	// HTTPStatus is the status of the code at the HTTP edge.
	HTTPStatus int
}

// Codes returns the error table, a row per code.
func Codes() []CodeInfo {
	return []CodeInfo{
		{CodeInvalid, "the input breaks its schema or a rule of the command; the path says where", false, true, 400},
		{CodeTooLarge, "the data or the headers exceed their limit", false, true, 413},
		{CodeUndecodable, "the message is not a CloudEvent of the NATS binding", false, true, 400},
		{CodeUnknownCommand, "no such command, or subject and type disagree", false, true, 404},
		{CodeUnknownSession, "no session has this id or name; nothing was created", false, true, 404},
		{CodeUnknownTurn, "the session has no such turn", false, true, 404},
		{CodeUnknownReceipt, "no item has this receipt", false, true, 404},
		{CodeUnknownOffer, "the offer is not open: answered, timed out or withdrawn", false, true, 409},
		{CodeUnknownExec, "the session has no such exec", false, true, 404},
		{CodeUnknownTarget, "no executor has registered this target", true, true, 404},
		{CodeUnknownLease, "nobody holds this lease", false, true, 404},
		{CodeUnknownToken, "the profile has no token of this name", false, true, 404},
		{CodeUnknownPackage, "the profile has no package of this key or name", false, true, 404},
		{CodeUnknownRun, "the profile has no setup run of this id", false, true, 404},
		{CodeNoConsent, "nobody consented to this revision of the setup; nothing was run", false, true, 403},
		{CodeRevisionChanged, "what would run is not what was reviewed; nothing was run", false, true, 409},
		{CodeSetupFailed, "the setup's own command failed; what was installed before is untouched", false, true, 422},
		{CodeNotInEffect, "the package takes effect at the session's next epoch or attach", false, true, 409},
		{CodeAmbiguousName, "the bare name means several sessions; use the session id", false, true, 409},
		{CodeNameTaken, "the name is another's, and a name is given once", false, true, 409},
		{CodeUnauthenticated, "no bearer token, or one that is unknown, expired or revoked", false, true, 401},
		{CodeForbidden, "the caller may not do this; the attempt is on record", false, true, 403},
		{CodeIdentityConflict, "the names belong to different sessions; only an operator's merge joins them", false, true, 409},
		{CodeAlreadyImported, "another record of this session was imported before; it stands", false, true, 409},
		{CodeUnknownImport, "no such import is under way: begin again", false, true, 404},
		{CodeConflict, "others changed the session at each try", true, true, 409},
		{CodeAlreadyFinalized, "the epoch has ended before; the first reason stands", false, true, 409},
		{CodeAlreadyAttached, "another live host drives the session", true, true, 409},
		{CodeAlreadyEnded, "the turn or exec has ended before; the first outcome stands", false, true, 409},
		{CodeEpochEnded, "the name belongs to an epoch that has ended", false, true, 410},
		{CodeStaleFence, "the caller no longer owns what it acts on: stop", false, true, 409},
		{CodeStaleSelection, "the target changed since it was selected; nothing was started", false, true, 409},
		{CodeUnknownApproval, "no approval has this id", false, true, 404},
		{CodeUnknownQuestion, "no question has this id, or it was not put to the caller", false, true, 404},
		{CodeHandlerFailed, "the process that handles it could not do it; what it did stands, and it is not tried again", false, true, 502},
		{CodeUnknownInvocation, "no slash command has this id, or it was not given to the caller", false, true, 404},
		{CodeAlreadyAnswered, "somebody answered before; the first answer stands", false, true, 409},
		{CodeStaleApproval, "the action is not, or no longer, the one that was approved; nothing was started", false, true, 409},
		{CodeApprovalDenied, "the action was not approved; nothing was started", false, true, 403},
		{CodeApprovalExpired, "nobody approved the action in time; nothing was started", false, true, 410},
		{CodeTargetUnsupported, "the runner cannot route to this target", false, true, 501},
		{CodeBusy, "a turn runs and the mode does not wait", true, true, 409},
		{CodeUnsupported, "the host or bus cannot do this mode and no downgrade was allowed", false, true, 501},
		{CodeWrongState, "the item is not in a state in which this can be done; the details say in which", false, true, 409},
		{CodeIdempotencyConflict, "the idempotency key was used for another body", false, true, 409},
		{CodeTooOld, "the command is older than what the bus remembers of answers", false, true, 410},
		{CodeQueueFull, "the session has too many waiting items", true, true, 429},
		{CodeLeaseHeld, "another holder has the lease", true, true, 409},
		{CodeLeaseLost, "the lease ran out or was taken: stop", false, true, 409},
		{CodeLeaseRevoked, "an operator took the lease away; this instance does not get it again", false, true, 409},
		{CodeUnknownLetter, "no dead letter has this sequence: dropped, or older than is kept", false, true, 404},
		{CodeStoreFull, "the store has reached its limit; nothing was written", true, true, 507},
		{CodeStoreRegressed, "the store lost messages it once had; the operator must decide", false, true, 503},
		{CodeStoreDamaged, "the store's files are not what was written; the operator must decide", false, true, 503},
		{CodeStoreNewer, "the store was written by a newer bus, which alone may open it", false, true, 503},
		{CodeUnavailable, "no active authority answers yet", true, true, 503},
		{CodeRateLimited, "the caller sends faster than its allowance", true, true, 429},
		{CodeTimeout, "no answer within the command's deadline; it may have been done", true, true, 504},
		{CodeLaunchFailed, "the process could not be started", false, true, 422},
		{CodeInternal, "a fault of the bus; its log says more", true, true, 500},
		{CodeValidateFailed, "the target's own check did not pass; nothing was started", true, true, 503},
		{CodeTargetClaimed, "another session has the exclusive target; nothing was started", true, true, 409},
		{CodeLimitsUnenforceable, "the target's limits cannot be enforced where its executor runs", false, true, 422},
		{CodeRuntimeDirMissing, "the target's runtime directory is not there, or no directory", true, true, 422},
		{CodeRuntimeDirForeign, "the target's runtime directory belongs to another user", false, true, 422},
		{CodeRuntimeDirExposed, "others could read or replace the target's runtime directory", false, true, 422},
		{CodeRuntimeDirSymlink, "a part of the target's runtime directory is a symbolic link", false, true, 422},
		{CodeRuntimeDirTooLong, "the path of the target's runtime directory leaves no room for a socket", false, true, 422},
		{CodeRuntimeDirUnsupported, "the executor's platform has no private directories", false, true, 422},
	}
}

// Lookup returns the row of c; ok is false for a code this version does not know.
func Lookup(c Code) (info CodeInfo, ok bool) {
	for _, info := range Codes() {
		if info.Code == c {
			return info, true
		}
	}
	return CodeInfo{Code: c}, false
}

// Error is a refusal: what went wrong, and where. It is compared by code, so
// errors.Is(err, events.ErrOf(events.CodeForbidden)) works.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Path points at the offending input, as a JSON pointer or an attribute's name.
	Path string `json:"path,omitempty"`
	// Details depend on the code, e.g. the first reason of already_finalized.
	Details map[string]string `json:"details,omitempty"`
}

// Errorf returns an [Error] with a formatted message.
func Errorf(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...)}
}

// ErrOf returns an error that matches every [Error] of the code under errors.Is.
func ErrOf(c Code) error { return &Error{Code: c} }

// Error implements error.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Path != "" {
		s += " (at " + e.Path + ")"
	}
	return s
}

// Is reports whether target is an [Error] of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// With returns a copy of e with one more detail.
func (e *Error) With(key, value string) *Error {
	out := *e
	out.Details = make(map[string]string, len(e.Details)+1)
	for k, v := range e.Details {
		out.Details[k] = v
	}
	out.Details[key] = value
	return &out
}

// CodeOf returns the code of the first [Error] in err's chain, or internal.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
