package events

import "errors"

// Raw is a piece of JSON kept as it came. Unlike [encoding/json.RawMessage] in an
// interface, its zero value is absent, and it is never re-encoded by this module.
type Raw []byte

// MarshalJSON implements json.Marshaler.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Raw) UnmarshalJSON(b []byte) error {
	if r == nil {
		return errors.New("events.Raw: UnmarshalJSON on nil pointer")
	}
	*r = append((*r)[:0], b...)
	return nil
}
