package broker

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// textEdit makes one change to the text of principals.yaml, around which all else stays
// as its author wrote it.
type textEdit func(doc *ast.File) error

// errNoBlock says that the list is not written as one entry below the other.
var errNoBlock = errors.New("principals are not a block sequence")

// keepComments returns the text of a file that says want: the old text with the edit
// made to it, if that says just the same, else a fresh text without comments.
func keepComments(before []byte, want principalsFile, change textEdit) ([]byte, error) {
	fresh, err := yaml.Marshal(want)
	if err != nil {
		return nil, fmt.Errorf("encode principals: %w", err)
	}
	doc, err := parser.ParseBytes(before, parser.ParseComments)
	if err != nil || change(doc) != nil {
		return fresh, nil
	}
	edited := []byte(doc.String())
	var got principalsFile
	if err := yaml.UnmarshalWithOptions(edited, &got, yaml.Strict()); err != nil {
		return fresh, nil
	}
	if again, err := yaml.Marshal(got); err != nil || !bytes.Equal(again, fresh) {
		return fresh, nil
	}
	return edited, nil
}

// principalsNode returns the list of principals, if it is one that can be edited.
func principalsNode(doc *ast.File) (*yaml.Path, *ast.SequenceNode, error) {
	path, err := yaml.PathString("$.principals")
	if err != nil {
		return nil, nil, fmt.Errorf("find principals: %w", err)
	}
	node, err := path.FilterFile(doc)
	if err != nil {
		return nil, nil, fmt.Errorf("find principals: %w", err)
	}
	list, ok := node.(*ast.SequenceNode)
	if !ok || list.IsFlowStyle || len(list.Values) == 0 {
		return nil, nil, errNoBlock
	}
	return path, list, nil
}

func appendEntry(doc *ast.File, e principalEntry) error {
	path, _, err := principalsNode(doc)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal([]principalEntry{e})
	if err != nil {
		return fmt.Errorf("encode principal: %w", err)
	}
	return path.MergeFromReader(doc, bytes.NewReader(text))
}

func deleteEntry(doc *ast.File, i int) error {
	_, list, err := principalsNode(doc)
	if err != nil {
		return err
	}
	if len(list.Values) == 1 || i >= len(list.Values) {
		return errNoBlock
	}
	list.Values = append(list.Values[:i], list.Values[i+1:]...)
	if i < len(list.ValueHeadComments) {
		list.ValueHeadComments = append(list.ValueHeadComments[:i], list.ValueHeadComments[i+1:]...)
	}
	return nil
}
