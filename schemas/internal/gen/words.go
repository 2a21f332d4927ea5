package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// words are the doc comments of types and fields, and the values of string
// constants by their type.
type words struct {
	docs   map[string]string // by type
	fields map[string]string // by "Struct.Field"
	enums  map[string][]any  // by type
}

func readWords(dir string) (words, error) {
	w := words{docs: map[string]string{}, fields: map[string]string{}, enums: map[string][]any{}}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return w, err
	}
	fset := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return w, fmt.Errorf("parse %s: %w", name, err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				w.read(g)
			}
		}
	}
	return w, nil
}

func (w words) read(g *ast.GenDecl) {
	for _, s := range g.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			doc := s.Doc
			if doc == nil {
				doc = g.Doc
			}
			w.docs[s.Name.Name] = text(doc)
			if st, ok := s.Type.(*ast.StructType); ok {
				w.readFields(s.Name.Name, st)
			}
		case *ast.ValueSpec:
			w.readConstant(s)
		}
	}
}

func (w words) readFields(name string, st *ast.StructType) {
	for _, f := range st.Fields.List {
		doc := text(f.Doc)
		if doc == "" {
			doc = text(f.Comment)
		}
		for _, n := range f.Names {
			w.fields[name+"."+n.Name] = doc
		}
	}
}

func (w words) readConstant(s *ast.ValueSpec) {
	t, ok := s.Type.(*ast.Ident)
	if !ok || len(s.Values) != 1 {
		return
	}
	if lit, ok := s.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
		w.enums[t.Name] = append(w.enums[t.Name], strings.Trim(lit.Value, `"`))
	}
}

// text is a comment as one line, with doc links written plainly.
func text(c *ast.CommentGroup) string {
	return strings.NewReplacer("[", "", "]", "").Replace(strings.Join(strings.Fields(c.Text()), " "))
}
