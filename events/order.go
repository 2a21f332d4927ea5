package events

// OrderEntry describes what the authority tells a host or executor. Orders are plain
// JSON, not CloudEvents: they are told, not recorded.
type OrderEntry struct {
	Type Type
	New  func() any
}

// Orders returns every order in use.
func Orders() []OrderEntry {
	return []OrderEntry{
		{"keryx.order.offer.v1", fresh[Offer]},
		{"keryx.order.steer.v1", fresh[Steer]},
		{"keryx.order.interrupt.v1", fresh[InterruptTurn]},
		{"keryx.order.detached.v1", fresh[HostDetach]},
		{"keryx.order.start.v1", fresh[StartOrder]},
		{"keryx.order.stop.v1", fresh[StopOrder]},
		{"keryx.order.control.v1", fresh[ControlOrder]},
		{"keryx.order.release.v1", fresh[ReleaseOrder]},
		{"keryx.order.question.v1", fresh[PolicyQuestion]},
		{"keryx.order.setup.v1", fresh[SetupOrder]},
		{"keryx.order.setupstop.v1", fresh[SetupStopOrder]},
		{"keryx.order.invoke.v1", fresh[InvokeOrder]},
	}
}

// TypeProgressLine names the schema of [ProgressLine].
const TypeProgressLine = "keryx.format.progress.v1"

// Formats returns what else has a schema: JSON that programs give to Keryx by other ways
// than the bus. Unknown fields are refused.
func Formats() []OrderEntry {
	return []OrderEntry{{TypeProgressLine, fresh[ProgressLine]}}
}
