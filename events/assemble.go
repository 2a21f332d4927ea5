package events

import (
	"errors"
	"fmt"
	"slices"

	cloudevent "github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
)

// assembler makes an event of decoded attributes. It sets fields instead of calling
// the SDK's setters, which trim white space.
type assembler struct {
	context cloudevent.EventContextV1
	seen    [len(coreNames)]bool
}

var errTwice = errors.New("given more than once")

// put sets one attribute. value is a string; for an extension also a bool or int32.
func (a *assembler) put(name string, value any) error {
	if err := checkName(name); err != nil {
		return err
	}
	text, isText := value.(string)
	if err := checkValue(text); err != nil {
		return err
	}
	i := slices.Index(coreNames[:], name)
	if i < 0 {
		return a.extend(name, value)
	}
	switch {
	case a.seen[i]:
		return errTwice
	case !isText:
		return fmt.Errorf("%v is not a string", value)
	case isBlank(text):
		return errEmpty
	}
	a.seen[i] = true
	return a.set(name, text)
}

func (a *assembler) extend(name string, value any) error {
	if _, twice := a.context.Extensions[name]; twice {
		return errTwice
	}
	if a.context.Extensions == nil {
		a.context.Extensions = make(map[string]any)
	}
	a.context.Extensions[name] = value
	return nil
}

func (a *assembler) set(name, value string) error {
	c := &a.context
	switch name {
	case "specversion":
		if value != cloudevent.CloudEventsVersionV1 {
			return fmt.Errorf("%q is not %s", value, cloudevent.CloudEventsVersionV1)
		}
	case "id":
		c.ID = value
	case "type":
		c.Type = value
	case "subject":
		c.Subject = &value
	case "datacontenttype":
		c.DataContentType = &value
		return checkMediaType(value)
	case "source":
		u, err := parseURI(value)
		c.Source = types.URIRef{URL: u}
		return err
	case "dataschema":
		u, err := parseAbsoluteURI(value)
		c.DataSchema = &types.URI{URL: u}
		return err
	case "time":
		t, err := parseTime(value)
		c.Time = &types.Timestamp{Time: t}
		return err
	}
	return nil
}

// event returns the event, without payload, once every required attribute was put.
func (a *assembler) event() (Event, error) {
	for i, name := range coreNames[:requiredNames] {
		if !a.seen[i] {
			return Event{}, attributeError(CodeUndecodable, name, "a required attribute is missing")
		}
	}
	return Event{Context: &a.context}, nil
}
