package events

import "slices"

// Class says what an entry of the catalogue is.
type Class string

// What an entry of the catalogue is.
const (
	ClassEvent   Class = "event"   // a fact on the log
	ClassCommand Class = "command" // a request to the authority
)

// Entry describes one type of event or command.
type Entry struct {
	Type  Type
	Class Class
	// New returns a pointer to a zero value of the data struct.
	New func() any
	// Answer returns a pointer to a zero answer; nil for events.
	Answer func() any
	// Roles may send the command; nil for events.
	Roles []Role
	// Read is true for commands that change nothing.
	Read bool
	// Profile is true for events of the scope _profile, Run for those of a setup run's
	// scope, Account for those of a gateway account's; others are a session's.
	Profile, Run, Account bool
}

func fresh[T any]() any { return new(T) }

func event[T any](t Type) Entry { return Entry{Type: t, Class: ClassEvent, New: fresh[T]} }

func profileEvent[T any](t Type) Entry {
	return Entry{Type: t, Class: ClassEvent, New: fresh[T], Profile: true}
}

func command[T, A any](t Type, roles ...Role) Entry {
	return Entry{Type: t, Class: ClassCommand, New: fresh[T], Answer: fresh[A], Roles: roles}
}

func read[T, A any](t Type) Entry {
	return Entry{Type: t, Class: ClassCommand, New: fresh[T], Answer: fresh[A], Roles: Roles(), Read: true}
}

// Catalogue returns every type in use, events first.
func Catalogue() []Entry {
	return slices.Concat(eventEntries(), packageEntries(), gatewayEntries(), allCommands())
}

func allCommands() []Entry {
	return slices.Concat(commandEntries(), packageCommands(), gatewayCommands(), deadCommands())
}

func eventEntries() []Entry {
	return []Entry{
		event[SessionRegistered](TypeSessionRegistered),
		event[SessionAliased](TypeSessionAliased),
		event[SessionStarted](TypeSessionStarted),
		event[SessionAttached](TypeSessionAttached),
		event[SessionDetached](TypeSessionDetached),
		event[SessionIdle](TypeSessionIdle),
		event[SessionReanchored](TypeSessionReanchored),
		event[SessionReset](TypeSessionReset),
		event[SessionFinalized](TypeSessionFinalized),
		event[SessionForgotten](TypeSessionForgotten),
		event[SessionPolicyChanged](TypeSessionPolicyChanged),
		event[TurnStarted](TypeTurnStarted),
		event[TurnSteered](TypeTurnSteered),
		event[TurnEnded](TypeTurnEnded),
		event[TurnReportedLate](TypeTurnReportedLate),
		event[ContinuationQueued](TypeContinuationQueued),
		event[ContinuationOffered](TypeContinuationOffered),
		event[ContinuationRequeued](TypeContinuationRequeued),
		event[ContinuationUnresolved](TypeContinuationUnresolved),
		event[ContinuationInvalidated](TypeContinuationInvalidated),
		event[ContinuationEdited](TypeContinuationEdited),
		event[ContinuationDowngraded](TypeContinuationDowngraded),
		event[ContinuationHeld](TypeContinuationHeld),
		event[ContinuationReleased](TypeContinuationReleased),
		event[ContinuationExpired](TypeContinuationExpired),
		event[ContinuationCancelled](TypeContinuationCancelled),
		event[ContinuationDiscarded](TypeContinuationDiscarded),
		event[ExecRequested](TypeExecRequested),
		event[ExecStarted](TypeExecStarted),
		event[ExecRefused](TypeExecRefused),
		event[ExecExited](TypeExecExited),
		event[ExecLost](TypeExecLost),
		event[ApprovalRequested](TypeApprovalRequested),
		event[ApprovalGranted](TypeApprovalGranted),
		event[ApprovalDenied](TypeApprovalDenied),
		event[ApprovalExpired](TypeApprovalExpired),
		event[ApprovalConsumed](TypeApprovalConsumed),
		event[ApprovalInvalidated](TypeApprovalInvalidated),
		event[PolicyAsked](TypePolicyAsked),
		event[PolicyVoted](TypePolicyVoted),
		event[PolicyAnswered](TypePolicyAnswered),
		event[CommandInvoked](TypeCommandInvoked),
		event[CommandCompleted](TypeCommandCompleted),
		event[CommandFailed](TypeCommandFailed),
		profileEvent[HandlerRegistered](TypeHandlerRegistered),
		profileEvent[TargetRegistered](TypeTargetRegistered),
		profileEvent[TargetWithdrawn](TypeTargetWithdrawn),
		profileEvent[TargetReported](TypeTargetReported),
		profileEvent[TargetAttached](TypeTargetAttached),
		profileEvent[TargetDetached](TypeTargetDetached),
		profileEvent[TokenAdded](TypeTokenAdded),
		profileEvent[TokenRevoked](TypeTokenRevoked),
		profileEvent[LeaseRevocation](TypeLeaseRevoked),
		profileEvent[LeaseTakeover](TypeLeaseTakenOver),
		profileEvent[TargetControlChanged](TypeTargetControlChanged),
		profileEvent[AuditRefused](TypeAuditRefused),
		profileEvent[SessionImported](TypeSessionImported),
		profileEvent[StoreRegressed](TypeStoreRegressed),
	}
}

func commandEntries() []Entry {
	return []Entry{
		command[Register, Registered](CmdSessionRegister, RoleHost, RoleGateway, RoleOperator),
		command[Alias, Registered](CmdSessionAlias, RoleHost, RoleGateway, RoleOperator),
		command[Attach, Attached](CmdSessionAttach, RoleHost),
		command[Detach, Done](CmdSessionDetach, RoleHost),
		command[Reanchor, Registered](CmdSessionReanchor, RoleHost),
		command[Reset, EpochAnswer](CmdSessionReset, RoleHost, RoleGateway, RoleOperator),
		command[Finalize, EpochAnswer](CmdSessionFinalize, RoleHost, RoleGateway, RoleOperator),
		command[Forget, Done](CmdSessionForget, RoleOperator),
		command[SetPolicy, PolicyAnswer](CmdSessionPolicy, RoleOperator),
		read[SessionList, Sessions](CmdSessionList),
		read[SessionShow, SessionView](CmdSessionShow),
		command[Accept, Accepted](CmdTurnAccept, RoleHost),
		command[Decline, Done](CmdTurnDecline, RoleHost),
		command[End, Ended](CmdTurnEnd, RoleHost),
		command[Interrupt, Ended](CmdTurnInterrupt, RoleGateway, RoleOperator),
		read[TurnShow, TurnView](CmdTurnShow),
		read[TurnList, TurnPage](CmdTurnList),
		command[Submit, Receipt](CmdContinuationSubmit, RoleGateway, RoleOperator, RoleHost, RoleExecutor),
		read[ReceiptShow, Receipt](CmdContinuationReceipt),
		command[Cancel, Receipt](CmdContinuationCancel, RoleGateway, RoleOperator, RoleHost, RoleExecutor),
		command[Edit, Receipt](CmdContinuationEdit, RoleGateway, RoleOperator, RoleHost, RoleExecutor),
		command[Requeue, Receipt](CmdContinuationRequeue, RoleGateway, RoleOperator, RoleHost, RoleExecutor),
		command[Discard, Receipt](CmdContinuationDiscard, RoleGateway, RoleOperator, RoleHost, RoleExecutor),
		command[RegisterTarget, Selection](CmdTargetRegister, RoleExecutor),
		command[WithdrawTarget, Done](CmdTargetWithdraw, RoleExecutor),
		command[ReportTarget, Done](CmdTargetReport, RoleExecutor),
		command[ReportTargetAttached, Done](CmdTargetAttached, RoleExecutor),
		command[ReportTargetDetached, Done](CmdTargetDetached, RoleExecutor),
		command[DetachTarget, Done](CmdTargetDetach, RoleHost, RoleOperator),
		command[ControlTarget, Selection](CmdTargetControl, RoleOperator),
		read[SelectTarget, Selection](CmdTargetSelect),
		read[TargetList, Targets](CmdTargetList),
		command[StartExec, ExecAnswer](CmdExecStart, RoleHost, RoleOperator),
		command[StopExec, ExecAnswer](CmdExecStop, RoleHost, RoleGateway, RoleOperator),
		command[ReportStarted, Done](CmdExecReportStarted, RoleExecutor),
		command[ReportRefused, Done](CmdExecReportRefused, RoleExecutor),
		command[ReportExited, Done](CmdExecReportExited, RoleExecutor),
		command[ReportLost, Done](CmdExecReportLost, RoleExecutor),
		read[Output, OutputPage](CmdExecOutput),
		command[GrantApproval, ApprovalView](CmdApprovalGrant, RoleOperator, RoleGateway),
		command[DenyApproval, ApprovalView](CmdApprovalDeny, RoleOperator, RoleGateway),
		read[ApprovalShow, ApprovalView](CmdApprovalShow),
		read[ApprovalList, Approvals](CmdApprovalList),
		command[AskPolicy, QuestionView](CmdPolicyAsk, RoleHost),
		command[VotePolicy, Done](CmdPolicyVote, RoleOperator, RoleGateway),
		read[QuestionShow, QuestionView](CmdPolicyShow),
		command[RegisterHandler, HandlerRegistered](CmdHandlerRegister, RoleHost, RoleExecutor, RoleGateway, RoleOperator),
		command[InvokeCommand, InvocationView](CmdCommandInvoke, RoleGateway, RoleOperator),
		command[AnswerCommand, Done](CmdCommandAnswer, RoleHost, RoleExecutor, RoleGateway, RoleOperator),
		read[ShowCommand, InvocationView](CmdCommandShow),
		read[CommandList, CommandMenu](CmdCommandList),
		command[AcquireLease, LeaseAnswer](CmdLeaseAcquire, RoleHost, RoleExecutor, RoleGateway, RoleOperator),
		command[RenewLease, LeaseRenewals](CmdLeaseRenew, RoleHost, RoleExecutor, RoleGateway, RoleOperator),
		command[ReleaseLease, Done](CmdLeaseRelease, RoleHost, RoleExecutor, RoleGateway, RoleOperator),
		command[RevokeLease, RevokedLease](CmdLeaseRevoke, RoleOperator),
		read[LeaseList, Leases](CmdLeaseList),
		command[AddToken, TokenView](CmdTokenAdd, RoleOperator),
		command[RevokeToken, TokenView](CmdTokenRevoke, RoleOperator),
		read[TokenList, Tokens](CmdTokenList),
		read[LogPage, LogPageEnd](CmdLogPage),
		read[LogTips, Tips](CmdLogTips),
		read[FindSession, FoundSession](CmdSessionFind),
		command[BeginImport, ImportState](CmdImportBegin, RoleOperator),
		command[PutImport, ImportState](CmdImportPut, RoleOperator),
		command[EndImport, SessionImported](CmdImportEnd, RoleOperator),
		read[ImportList, Imports](CmdImportList),
	}
}

// Find returns the entry of a type; ok is false for one this version does not know.
func Find(t Type) (e Entry, ok bool) {
	e, ok = byType[t]
	return e, ok
}

// FindCommand returns the entry of the command with this noun and verb.
func FindCommand(noun, verb string) (e Entry, ok bool) {
	e, ok = byShort[noun+"."+verb]
	return e, ok
}

var (
	byType  = indexByType()
	byShort = indexCommands()
)

func indexByType() map[Type]Entry {
	m := make(map[Type]Entry)
	for _, e := range Catalogue() {
		m[e.Type] = e
	}
	return m
}

func indexCommands() map[string]Entry {
	m := make(map[string]Entry)
	for _, e := range allCommands() {
		m[e.Type.Short()] = e
	}
	return m
}
