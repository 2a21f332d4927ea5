package setup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"

	"keryx/events"
)

const (
	// maxSlug keeps a key within the tokens that it becomes part of.
	maxSlug = 50
	// keyDigest is how many hexadecimal digits of the source's digest a key has: 48 bits.
	// Keys that meet by chance are refused, see [State.Add].
	keyDigest = 12
)

// Normalise returns a package's name as its key has it: lower-case letters and digits,
// with one dash for anything between. It is empty for a name without any.
func Normalise(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	slug := b.String()
	return strings.Trim(slug[:min(len(slug), maxSlug)], "-")
}

// KeyOf returns the canonical key of a package. The name must normalise to something.
func KeyOf(name, source string) events.PackageKey {
	sum := sha256.Sum256([]byte(source))
	return events.PackageKey(Normalise(name) + "-" + hex.EncodeToString(sum[:])[:keyDigest])
}

// digest hashes fields so that no two lists of them have the same bytes.
type digest struct{ h hash.Hash }

func newDigest(kind string) digest {
	d := digest{sha256.New()}
	d.text("keryx " + kind + " 1")
	return d
}

func (d digest) text(s string) {
	d.number(int64(len(s)))
	d.h.Write([]byte(s))
}

func (d digest) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	d.h.Write(b[:])
}

func (d digest) list(values []string) {
	d.number(int64(len(values)))
	for _, v := range values {
		d.text(v)
	}
}

func (d digest) files(files []events.PackageFile) {
	d.number(int64(len(files)))
	for _, f := range files {
		d.text(f.Path)
		d.text(f.SHA256)
		d.number(f.Bytes)
		d.flag(f.Executable)
	}
}

func (d digest) flag(on bool) {
	n := int64(0)
	if on {
		n = 1
	}
	d.number(n)
}

func (d digest) revision() events.Revision {
	return events.Revision(hex.EncodeToString(d.h.Sum(nil)))
}

// ContentRevision is the revision of a package: of its files, the manifest among them.
func ContentRevision(files []events.PackageFile) events.Revision {
	d := newDigest("package")
	d.files(files)
	return d.revision()
}

// PlanRevision is what consent is given to: everything in the plan but the run's own id
// and what is only for people.
func PlanRevision(p events.SetupPlan) events.Revision {
	d := newDigest("setup")
	d.list([]string{
		string(p.Key), p.Source, p.Dir, string(p.Profile), string(p.Target), string(p.Executor), p.Home, string(p.Package),
	})
	d.list(p.Setup.Command)
	d.list(p.Setup.Needs)
	d.number(p.Setup.TimeoutMS)
	d.files(p.Files)
	return d.revision()
}
