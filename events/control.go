package events

// ControlTarget takes over who may type into a target's terminals, or gives it back. Both
// raise the target's access epoch, so that input and selections of the one before are
// refused from then on. Answer: [Selection].
type ControlTarget struct {
	Name TargetName `json:"name"`
	// Release: true gives control back: whoever selects the target anew may type again.
	// It does nothing when the target has moved on from AccessEpoch.
	Release     bool   `json:"release,omitempty"`
	AccessEpoch uint64 `json:"access_epoch,omitempty"`
}

// TargetControlChanged says that somebody else may type into a target's terminals now
// (scope _profile).
type TargetControlChanged struct {
	Name TargetName `json:"name"`
	// From had control before; empty is nobody in particular.
	From PrincipalName `json:"from,omitempty"`
	// To has control now; empty is nobody in particular.
	To PrincipalName `json:"to,omitempty"`
	// AccessEpoch is the new one. It rises for ever, over all registrations of the name.
	AccessEpoch uint64 `json:"access_epoch"`
}

// ControlOrder tells an executor who may type into a target (kx.exec ... .control).
type ControlOrder struct {
	Target      TargetName    `json:"target"`
	AccessEpoch uint64        `json:"access_epoch"`
	Controller  PrincipalName `json:"controller,omitempty"`
}
