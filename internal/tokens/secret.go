package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"
)

// secretPrefix lets people and scanners of leaked secrets tell what a secret is for.
const secretPrefix = "keryx_"

// secretBytes are 256 bits: beyond guessing.
const secretBytes = 32

// NewSecret returns a fresh secret of letters and digits.
func NewSecret() string {
	var b [secretBytes]byte
	rand.Read(b[:]) // never fails
	return secretPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// Digest returns what the record keeps of a secret: its SHA-256 in hexadecimal.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
