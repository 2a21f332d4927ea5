//go:build !unix

package privdir

// Owner is who a directory is private to.
type Owner struct{ UID, GID uint32 }

// Self is the user of this process.
func Self() Owner { return Owner{} }

// Check refuses: there are no private directories here.
func Check(path string, _ Owner) error { return Unsupported(path) }

// Below refuses: there are no private directories here.
func Below(root, _ string, _ Owner) (string, error) { return "", Unsupported(root) }
