package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// SetHash returns the SHA-256 of the whole set of schemas, in hexadecimal digits: two
// programs with the same hash mean the same by each type. It is safe for concurrent use.
var SetHash = sync.OnceValue(setHash)

func setHash() string {
	sum := sha256.New()
	for _, name := range Names() {
		body, err := FS.ReadFile(name + ".json")
		if err != nil { // the files are part of the program
			panic(err)
		}
		one := sha256.Sum256(body)
		sum.Write([]byte(name + "\n"))
		sum.Write(one[:])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
