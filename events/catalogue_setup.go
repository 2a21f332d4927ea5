package events

// runEvent is an event of a setup run, whose scope is its own.
func runEvent[T any](t Type) Entry {
	return Entry{Type: t, Class: ClassEvent, New: fresh[T], Run: true}
}

func packageEntries() []Entry {
	return []Entry{
		profileEvent[PackageAdded](TypePackageAdded),
		profileEvent[PackageEnabled](TypePackageEnabled),
		profileEvent[PackageDisabled](TypePackageDisabled),
		profileEvent[PackageRemoved](TypePackageRemoved),
		runEvent[SetupPlanned](TypeSetupPlanned),
		runEvent[SetupConsented](TypeSetupConsented),
		runEvent[SetupStarted](TypeSetupStarted),
		runEvent[SetupProgressed](TypeSetupProgressed),
		runEvent[SetupSucceeded](TypeSetupSucceeded),
		runEvent[SetupFailed](TypeSetupFailed),
		runEvent[SetupCancelRequested](TypeSetupCancelRequested),
		runEvent[SetupCancelled](TypeSetupCancelled),
		runEvent[SetupNotified](TypeSetupNotified),
	}
}

func packageCommands() []Entry {
	return []Entry{
		command[AddPackage, PackageRefs](CmdPackageAdd, RoleOperator),
		command[EnablePackages, PackageRefs](CmdPackageEnable, RoleOperator),
		command[DisablePackages, PackageRefs](CmdPackageDisable, RoleOperator),
		command[RemovePackages, PackageRefs](CmdPackageRemove, RoleOperator),
		read[PackageList, Packages](CmdPackageList),
		command[PlanSetup, SetupAnswer](CmdSetupPlan, RoleOperator, RoleGateway, RoleHost),
		command[ConsentSetup, SetupAnswer](CmdSetupConsent, RoleOperator),
		command[RunSetup, SetupAnswer](CmdSetupRun, RoleOperator, RoleGateway),
		command[CancelSetup, SetupAnswer](CmdSetupCancel, RoleOperator, RoleGateway),
		read[ShowSetup, SetupView](CmdSetupShow),
		read[SetupList, Setups](CmdSetupList),
		command[ReportProgress, Done](CmdSetupReportProgress, RoleExecutor),
		command[ReportSetupEnded, SetupVerdict](CmdSetupReportEnded, RoleExecutor),
	}
}
