package targetfile

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Error says what is wrong with a file, and where.
type Error struct {
	Path         string
	Line, Column int // from 1; 0 when the file as a whole is meant
	Message      string
}

// Error implements error, in the form that editors jump to.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Column, e.Message)
}

// at makes an error about a node.
func at(n ast.Node, format string, args ...any) *Error {
	e := &Error{Message: fmt.Sprintf(format, args...)}
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key // the token of a mapping is its first colon
	}
	if n != nil {
		e.place(n.GetToken())
	}
	return e
}

func (e *Error) place(t *token.Token) {
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
}

// syntax makes an error of the parser's.
func syntax(err error) *Error {
	e := &Error{Message: err.Error()}
	if y, ok := errors.AsType[yaml.Error](err); ok {
		e.Message = y.GetMessage()
		e.place(y.GetToken())
	}
	return e
}
