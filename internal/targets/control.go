package targets

import "keryx/events"

func (s *State) foldControl(r events.Record) error {
	d, err := events.DataOf[events.TargetControlChanged](r)
	if err != nil {
		return err
	}
	if s.control == nil {
		s.control = make(map[events.TargetName]control)
	}
	s.control[d.Name] = control{epoch: max(d.AccessEpoch, s.control[d.Name].epoch), controller: d.To}
	return nil
}

// Control decides on a take-over of a target's terminals, or on giving them back. It returns
// the event to append, or nil when there is nothing to give back, and the selection that
// holds then. Its error is unknown_target.
func (s *State) Control(by events.PrincipalName, c events.ControlTarget) (*events.TargetControlChanged, events.Selection, error) {
	sel, err := s.Select(c.Name)
	if err != nil {
		return nil, sel, err
	}
	fact := events.TargetControlChanged{Name: c.Name, From: sel.Controller, To: by, AccessEpoch: sel.AccessEpoch + 1}
	if c.Release {
		if sel.Controller != by || sel.AccessEpoch != c.AccessEpoch {
			return nil, sel, nil
		}
		fact.To = ""
	}
	sel.AccessEpoch, sel.Controller = fact.AccessEpoch, fact.To
	return &fact, sel, nil
}

// ControlOrder is what the executor of a selected target is told of who may type.
func ControlOrder(sel events.Selection) events.ControlOrder {
	return events.ControlOrder{Target: sel.Target, AccessEpoch: sel.AccessEpoch, Controller: sel.Controller}
}
