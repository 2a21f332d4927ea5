package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"reflect"
	"time"

	"keryx/internal/lifecycle"
	"keryx/schemas"
)

// format is raised when the form of the index changes.
const format = 1

// Identity says what a snapshot is of. Snapshots of another identity are ignored.
type Identity struct {
	// Created is when the log's stream was made, Generation that of its store.
	Created    time.Time
	Generation uint64
	// Set is [Set] of the program that wrote it.
	Set string
}

func (i Identity) same(o Identity) bool {
	return i.Created.Equal(o.Created) && i.Generation == o.Generation && i.Set == o.Set
}

// Set returns the hash of all that a snapshot's meaning depends on: the schemas, the
// version of the fold, and the fields that states and briefs have.
func Set() (string, error) {
	h := sha256.New()
	if _, err := fmt.Fprintln(h, format, lifecycle.FoldVersion); err != nil {
		return "", err
	}
	for _, name := range schemas.Names() {
		b, err := fs.ReadFile(schemas.FS, name+".json")
		if err != nil {
			return "", fmt.Errorf("hash schema %s: %w", name, err)
		}
		h.Write(b)
	}
	seen := map[reflect.Type]bool{}
	describe(h, reflect.TypeFor[lifecycle.State](), seen)
	describe(h, reflect.TypeFor[Entry](), seen)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// describe writes what a type is made of.
func describe(h hash.Hash, t reflect.Type, seen map[reflect.Type]bool) {
	h.Write([]byte(t.String() + " " + t.Kind().String() + "\n"))
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			h.Write([]byte(t.Field(i).Name + " "))
			describe(h, t.Field(i).Type, seen)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		describe(h, t.Elem(), seen)
	case reflect.Map:
		describe(h, t.Key(), seen)
		describe(h, t.Elem(), seen)
	default: // named by its kind
	}
}
