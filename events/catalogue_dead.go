package events

func deadCommands() []Entry {
	return []Entry{
		command[DeadList, DeadLetters](CmdDeadList, RoleOperator),
		command[DeadShow, DeadLetter](CmdDeadShow, RoleOperator),
		command[DeadDrop, DeadDropped](CmdDeadDrop, RoleOperator),
	}
}
