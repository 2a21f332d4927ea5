package events

import (
	"encoding/json"
	"fmt"
	"time"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
)

// Event is a CloudEvent. Its DataEncoded holds the payload bytes as they came.
type Event = cloudevent.Event

// Names of the extension attributes. Sequence, ordinal and fences are String
// attributes, because a CloudEvents Integer has 32 bits.
const (
	ExtOrdinal      = "ordinal"
	ExtSequence     = "sequence" // set on reading
	ExtEpoch        = "epoch"
	ExtTurn         = "turnid"
	ExtCorrelation  = "correlationid"
	ExtCausation    = "causationid" // the command
	ExtSessionFence = "sessionfence"
	ExtLeaseFence   = "leasefence"
	ExtTraceParent  = "traceparent"
	ExtTraceState   = "tracestate"
	ExtReportedTime = "reportedtime" // the caller's own clock
	ExtActingFor    = "actingfor"
)

// Record is an event of a log with its attributes in typed form. Data is the
// payload as it came; [DataOf] decodes it.
type Record struct {
	Type        Type
	ID          EventID
	Time        time.Time
	Source      string
	Profile     Profile
	Scope       Scope
	Sequence    Sequence
	Ordinal     Ordinal
	Epoch       Epoch
	Turn        TurnID
	Causation   CommandID
	Correlation string
	Data        []byte
	// Event is the CloudEvent itself; nil in records made for tests of pure code.
	Event *Event
}

// DataOf decodes the data of r into T, the data struct of r's type.
func DataOf[T any](r Record) (T, error) {
	var out T
	if err := json.Unmarshal(r.Data, &out); err != nil {
		return out, fmt.Errorf("decode data of %s at ordinal %d: %w", r.Type, r.Ordinal, err)
	}
	return out, nil
}
