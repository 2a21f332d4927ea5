package events

// gatewayEntries are what gateways report of their accounts.
func gatewayEntries() []Entry {
	return []Entry{
		accountEvent[GatewayReceived](TypeGatewayReceived),
		accountEvent[GatewaySent](TypeGatewaySent),
		accountEvent[GatewayDelayed](TypeGatewayDelayed),
		accountEvent[GatewayDropped](TypeGatewayDropped),
	}
}

// gatewayCommands are the commands about accounts.
func gatewayCommands() []Entry {
	return []Entry{command[RecordGateway, Done](CmdGatewayRecord, RoleGateway)}
}

func accountEvent[T any](t Type) Entry {
	return Entry{Type: t, Class: ClassEvent, New: fresh[T], Account: true}
}
