package events

import (
	"fmt"
	"strings"
)

// Type is a CloudEvents type: keryx.<noun>.<past verb>.v<N> for an event,
// keryx.cmd.<noun>.<verb>.v<N> for a command.
type Type string

const (
	typePrefix = "keryx."
	cmdPrefix  = "keryx.cmd."
)

// IsCommand reports whether t is the type of a command.
func (t Type) IsCommand() bool { return strings.HasPrefix(string(t), cmdPrefix) }

// Schema returns the dataschema of t, urn:keryx:schema:<type>.
func (t Type) Schema() string { return "urn:keryx:schema:" + string(t) }

// Short returns the type without prefix and version: "turn.started", "session.register".
func (t Type) Short() string {
	s := strings.TrimPrefix(strings.TrimPrefix(string(t), cmdPrefix), typePrefix)
	if i := strings.LastIndex(s, ".v"); i > 0 {
		return s[:i]
	}
	return s
}

// command returns the noun and verb of a command type.
func (t Type) command() (noun, verb string, err error) {
	noun, verb, ok := strings.Cut(t.Short(), ".")
	if !t.IsCommand() || !ok {
		return "", "", fmt.Errorf("type %q is not a command: %w", t, ErrBadSubject)
	}
	return noun, verb, nil
}

// The types of events. Each is explained at its data struct and in schemas/.
const (
	TypeSessionRegistered Type = "keryx.session.registered.v1"
	TypeSessionAliased    Type = "keryx.session.aliased.v1"
	TypeSessionStarted    Type = "keryx.session.started.v1"
	TypeSessionAttached   Type = "keryx.session.attached.v1"
	TypeSessionDetached   Type = "keryx.session.detached.v1"
	TypeSessionIdle       Type = "keryx.session.idle.v1"
	TypeSessionReanchored Type = "keryx.session.reanchored.v1"
	TypeSessionReset      Type = "keryx.session.reset.v1"
	TypeSessionFinalized  Type = "keryx.session.finalized.v1"
	TypeSessionImported   Type = "keryx.session.imported.v1"
	TypeSessionForgotten  Type = "keryx.session.forgotten.v1"

	TypeSessionPolicyChanged Type = "keryx.session.policy_changed.v1"

	TypeTurnStarted      Type = "keryx.turn.started.v1"
	TypeTurnSteered      Type = "keryx.turn.steered.v1"
	TypeTurnEnded        Type = "keryx.turn.ended.v1"
	TypeTurnReportedLate Type = "keryx.turn.reported_late.v1"

	TypeContinuationQueued      Type = "keryx.continuation.queued.v1"
	TypeContinuationOffered     Type = "keryx.continuation.offered.v1"
	TypeContinuationRequeued    Type = "keryx.continuation.requeued.v1"
	TypeContinuationUnresolved  Type = "keryx.continuation.unresolved.v1"
	TypeContinuationInvalidated Type = "keryx.continuation.invalidated.v1"

	TypeContinuationEdited     Type = "keryx.continuation.edited.v1"
	TypeContinuationDowngraded Type = "keryx.continuation.downgraded.v1"
	TypeContinuationHeld       Type = "keryx.continuation.held.v1"
	TypeContinuationReleased   Type = "keryx.continuation.released.v1"
	TypeContinuationExpired    Type = "keryx.continuation.expired.v1"
	TypeContinuationCancelled  Type = "keryx.continuation.cancelled.v1"
	TypeContinuationDiscarded  Type = "keryx.continuation.discarded.v1"

	TypeTargetRegistered Type = "keryx.target.registered.v1"
	TypeTargetWithdrawn  Type = "keryx.target.withdrawn.v1"
	TypeTargetReported   Type = "keryx.target.reported.v1"
	TypeTargetAttached   Type = "keryx.target.attached.v1"
	TypeTargetDetached   Type = "keryx.target.detached.v1"
	// TypeTargetControlChanged: see [TargetControlChanged].
	TypeTargetControlChanged Type = "keryx.target.control_changed.v1"

	TypeLeaseRevoked   Type = "keryx.lease.revoked.v1"
	TypeLeaseTakenOver Type = "keryx.lease.taken_over.v1"

	TypeExecRequested Type = "keryx.exec.requested.v1"
	TypeExecStarted   Type = "keryx.exec.started.v1"
	TypeExecRefused   Type = "keryx.exec.refused.v1"
	TypeExecExited    Type = "keryx.exec.exited.v1"
	TypeExecLost      Type = "keryx.exec.lost.v1"

	TypeTokenAdded          Type = "keryx.token.added.v1"
	TypeTokenRevoked        Type = "keryx.token.revoked.v1"
	TypeApprovalRequested   Type = "keryx.approval.requested.v1"
	TypeApprovalGranted     Type = "keryx.approval.granted.v1"
	TypeApprovalDenied      Type = "keryx.approval.denied.v1"
	TypeApprovalExpired     Type = "keryx.approval.expired.v1"
	TypeApprovalConsumed    Type = "keryx.approval.consumed.v1"
	TypeApprovalInvalidated Type = "keryx.approval.invalidated.v1"

	TypePolicyAsked    Type = "keryx.policy.asked.v1"
	TypePolicyVoted    Type = "keryx.policy.voted.v1"
	TypePolicyAnswered Type = "keryx.policy.answered.v1"

	TypeGatewayReceived   Type = "keryx.gateway.received.v1"
	TypeGatewaySent       Type = "keryx.gateway.sent.v1"
	TypeGatewayDelayed    Type = "keryx.gateway.delayed.v1"
	TypeGatewayDropped    Type = "keryx.gateway.dropped.v1"
	TypeCommandInvoked    Type = "keryx.command.invoked.v1"
	TypeCommandCompleted  Type = "keryx.command.completed.v1"
	TypeCommandFailed     Type = "keryx.command.failed.v1"
	TypeHandlerRegistered Type = "keryx.handler.registered.v1"

	TypeAuditRefused   Type = "keryx.audit.refused.v1"
	TypeStoreRegressed Type = "keryx.store.regressed.v1"
)

// The types of commands. Each is explained at its data struct and in schemas/.
const (
	CmdSessionRegister Type = "keryx.cmd.session.register.v1"
	CmdSessionAlias    Type = "keryx.cmd.session.alias.v1"
	CmdSessionAttach   Type = "keryx.cmd.session.attach.v1"
	CmdSessionDetach   Type = "keryx.cmd.session.detach.v1"
	CmdSessionReanchor Type = "keryx.cmd.session.reanchor.v1"
	CmdSessionReset    Type = "keryx.cmd.session.reset.v1"
	CmdSessionFinalize Type = "keryx.cmd.session.finalize.v1"
	CmdSessionForget   Type = "keryx.cmd.session.forget.v1"
	CmdSessionPolicy   Type = "keryx.cmd.session.policy.v1"
	CmdSessionList     Type = "keryx.cmd.session.list.v1"
	CmdSessionShow     Type = "keryx.cmd.session.show.v1"

	CmdGatewayRecord Type = "keryx.cmd.gateway.record.v1"

	CmdTurnAccept    Type = "keryx.cmd.turn.accept.v1"
	CmdTurnDecline   Type = "keryx.cmd.turn.decline.v1"
	CmdTurnEnd       Type = "keryx.cmd.turn.end.v1"
	CmdTurnInterrupt Type = "keryx.cmd.turn.interrupt.v1"
	CmdTurnShow      Type = "keryx.cmd.turn.show.v1"
	CmdTurnList      Type = "keryx.cmd.turn.list.v1"

	CmdContinuationSubmit  Type = "keryx.cmd.continuation.submit.v1"
	CmdContinuationReceipt Type = "keryx.cmd.continuation.receipt.v1"
	CmdContinuationCancel  Type = "keryx.cmd.continuation.cancel.v1"
	CmdContinuationEdit    Type = "keryx.cmd.continuation.edit.v1"
	CmdContinuationRequeue Type = "keryx.cmd.continuation.requeue.v1"
	CmdContinuationDiscard Type = "keryx.cmd.continuation.discard.v1"

	CmdHandlerRegister Type = "keryx.cmd.handler.register.v1"
	CmdCommandInvoke   Type = "keryx.cmd.command.invoke.v1"
	CmdCommandAnswer   Type = "keryx.cmd.command.answer.v1"
	CmdCommandShow     Type = "keryx.cmd.command.show.v1"
	CmdCommandList     Type = "keryx.cmd.command.list.v1"

	CmdTargetRegister Type = "keryx.cmd.target.register.v1"
	CmdTargetWithdraw Type = "keryx.cmd.target.withdraw.v1"
	CmdTargetReport   Type = "keryx.cmd.target.report.v1"
	CmdTargetAttached Type = "keryx.cmd.target.report_attached.v1"
	CmdTargetDetached Type = "keryx.cmd.target.report_detached.v1"
	CmdTargetDetach   Type = "keryx.cmd.target.detach.v1"
	CmdTargetControl  Type = "keryx.cmd.target.control.v1"
	CmdTargetSelect   Type = "keryx.cmd.target.select.v1"
	CmdTargetList     Type = "keryx.cmd.target.list.v1"

	CmdExecStart         Type = "keryx.cmd.exec.start.v1"
	CmdExecStop          Type = "keryx.cmd.exec.stop.v1"
	CmdExecReportStarted Type = "keryx.cmd.exec.report_started.v1"
	CmdExecReportRefused Type = "keryx.cmd.exec.report_refused.v1"
	CmdExecReportExited  Type = "keryx.cmd.exec.report_exited.v1"
	CmdExecReportLost    Type = "keryx.cmd.exec.report_lost.v1"
	CmdExecOutput        Type = "keryx.cmd.exec.output.v1"

	CmdApprovalGrant Type = "keryx.cmd.approval.grant.v1"
	CmdApprovalDeny  Type = "keryx.cmd.approval.deny.v1"
	CmdApprovalShow  Type = "keryx.cmd.approval.show.v1"
	CmdApprovalList  Type = "keryx.cmd.approval.list.v1"

	CmdPolicyAsk  Type = "keryx.cmd.policy.ask.v1"
	CmdPolicyVote Type = "keryx.cmd.policy.vote.v1"
	CmdPolicyShow Type = "keryx.cmd.policy.show.v1"

	CmdLeaseAcquire Type = "keryx.cmd.lease.acquire.v1"
	CmdLeaseRenew   Type = "keryx.cmd.lease.renew.v1"
	CmdLeaseRelease Type = "keryx.cmd.lease.release.v1"
	CmdLeaseRevoke  Type = "keryx.cmd.lease.revoke.v1"
	CmdLeaseList    Type = "keryx.cmd.lease.list.v1"

	CmdTokenAdd    Type = "keryx.cmd.token.add.v1"
	CmdTokenRevoke Type = "keryx.cmd.token.revoke.v1"
	CmdTokenList   Type = "keryx.cmd.token.list.v1"

	CmdDeadList Type = "keryx.cmd.dead.list.v1"
	CmdDeadShow Type = "keryx.cmd.dead.show.v1"
	CmdDeadDrop Type = "keryx.cmd.dead.drop.v1"

	CmdLogPage Type = "keryx.cmd.log.page.v1"
	CmdLogTips Type = "keryx.cmd.log.tips.v1"

	CmdSessionFind Type = "keryx.cmd.session.find.v1"
	CmdImportBegin Type = "keryx.cmd.import.begin.v1"
	CmdImportPut   Type = "keryx.cmd.import.put.v1"
	CmdImportEnd   Type = "keryx.cmd.import.end.v1"
	CmdImportList  Type = "keryx.cmd.import.list.v1"
)

// The types of events and commands about packages and their setup.
const (
	TypePackageAdded    Type = "keryx.package.added.v1"
	TypePackageEnabled  Type = "keryx.package.enabled.v1"
	TypePackageDisabled Type = "keryx.package.disabled.v1"
	TypePackageRemoved  Type = "keryx.package.removed.v1"

	TypeSetupPlanned         Type = "keryx.setup.planned.v1"
	TypeSetupConsented       Type = "keryx.setup.consented.v1"
	TypeSetupStarted         Type = "keryx.setup.started.v1"
	TypeSetupProgressed      Type = "keryx.setup.progressed.v1"
	TypeSetupSucceeded       Type = "keryx.setup.succeeded.v1"
	TypeSetupFailed          Type = "keryx.setup.failed.v1"
	TypeSetupCancelRequested Type = "keryx.setup.cancel_requested.v1"
	TypeSetupCancelled       Type = "keryx.setup.cancelled.v1"
	TypeSetupNotified        Type = "keryx.setup.notified.v1"

	CmdPackageAdd     Type = "keryx.cmd.package.add.v1"
	CmdPackageEnable  Type = "keryx.cmd.package.enable.v1"
	CmdPackageDisable Type = "keryx.cmd.package.disable.v1"
	CmdPackageRemove  Type = "keryx.cmd.package.remove.v1"
	CmdPackageList    Type = "keryx.cmd.package.list.v1"

	CmdSetupPlan           Type = "keryx.cmd.setup.plan.v1"
	CmdSetupConsent        Type = "keryx.cmd.setup.consent.v1"
	CmdSetupRun            Type = "keryx.cmd.setup.run.v1"
	CmdSetupCancel         Type = "keryx.cmd.setup.cancel.v1"
	CmdSetupShow           Type = "keryx.cmd.setup.show.v1"
	CmdSetupList           Type = "keryx.cmd.setup.list.v1"
	CmdSetupReportProgress Type = "keryx.cmd.setup.report_progress.v1"
	CmdSetupReportEnded    Type = "keryx.cmd.setup.report_ended.v1"
)
