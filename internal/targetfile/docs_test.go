package targetfile_test

import (
	"os"
	"regexp"
	"testing"

	"keryx/internal/targetfile"
)

var example = regexp.MustCompile("(?s)```yaml\n(# target: .*?)```")

func TestDocs_show_files_that_can_be_read(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/targets.md")
	if err != nil {
		t.Fatal(err)
	}
	all := example.FindAllSubmatch(doc, -1)
	if len(all) < 4 {
		t.Fatalf("%d examples", len(all))
	}
	for _, m := range all {
		if spec, err := targetfile.Parse("docs/targets.md", m[1]); err != nil {
			t.Errorf("%v in:\n%s", err, m[1])
		} else if spec.Name == "" {
			t.Errorf("no name in:\n%s", m[1])
		}
	}
}
