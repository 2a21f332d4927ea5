package schemas

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// FS holds the schema files.
//
//go:embed *.json
var FS embed.FS

// ErrUnknownType means that there is no schema of this name.
var ErrUnknownType = errors.New("no schema for this type")

// ValidationError says what about the data breaks its schema, and where.
type ValidationError struct {
	// Path is the JSON pointer of the offending value; "" is the whole.
	Path    string
	Message string
}

// Error implements error.
func (e *ValidationError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Names returns the names of all schemas, in order.
func Names() []string {
	files, err := fs.Glob(FS, "*.json")
	if err != nil { // only for a malformed pattern
		panic(err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".json")
	}
	slices.Sort(files)
	return files
}

// Validate returns nil if data fits the schema of a type, a *[ValidationError] if it
// does not, and an error wrapping [ErrUnknownType] if there is no such schema. It is
// safe for concurrent use; a schema is compiled at its first use.
func Validate(typ string, data []byte) error {
	s, err := compiled(typ)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return &ValidationError{Message: "the data is absent"}
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return &ValidationError{Message: "the data is not JSON: " + err.Error()}
	}
	var invalid *jsonschema.ValidationError
	if err := s.Validate(v); errors.As(err, &invalid) {
		return explain(invalid)
	} else if err != nil {
		return fmt.Errorf("validate %s: %w", typ, err)
	}
	return nil
}

var cache sync.Map // type name -> func() (*jsonschema.Schema, error); write-once entries

func compiled(typ string) (*jsonschema.Schema, error) {
	if f, ok := cache.Load(typ); ok {
		return f.(func() (*jsonschema.Schema, error))()
	}
	body, err := FS.ReadFile(typ + ".json")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", typ, ErrUnknownType)
	}
	f, _ := cache.LoadOrStore(typ, sync.OnceValues(func() (*jsonschema.Schema, error) { return compile(typ, body) }))
	return f.(func() (*jsonschema.Schema, error))()
}

func compile(typ string, body []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("read schema %s: %w", typ, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	url := "urn:keryx:schema:" + typ
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("read schema %s: %w", typ, err)
	}
	s, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", typ, err)
	}
	return s, nil
}
