package targets

import "keryx/events"

// Declaration is a target as an executor is told to offer it.
type Declaration struct {
	Spec events.TargetSpec
	// Broken, if not nil, says why what was declared last is not in force: Spec is the one
	// before.
	Broken *events.Error
}
