package schemas_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keryx/schemas"
	"keryx/schemas/internal/compat"
)

// TestReleasedSchemas_gain_only_optional_fields compares each schema with the set that
// was released last. A change that breaks others needs a type of the next version.
func TestReleasedSchemas_gain_only_optional_fields(t *testing.T) {
	t.Parallel()
	released, err := filepath.Glob("released/v1/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(released) < 90 {
		t.Fatalf("only %d released schemas found", len(released))
	}
	for _, path := range released {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		after, err := schemas.FS.ReadFile(name + ".json")
		if err != nil {
			t.Errorf("%s was released and is gone", name)
			continue
		}
		found, err := compat.Compare(side(name), before, after)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range found {
			t.Errorf("%s %s", name, f)
		}
	}
}

func side(name string) compat.Side {
	if strings.HasPrefix(name, "keryx.cmd.") && !strings.HasSuffix(name, ".answer") {
		return compat.Taken
	}
	return compat.Given
}
