package events

import "time"

// TokenName names a bearer token of the HTTP edge within a profile: a slug like
// [Profile]. A name is given once: a revoked token's is never used again, so that the
// record's actingfor means one token.
type TokenName string

// Validate returns an error wrapping [ErrBadID] unless n is a slug.
func (n TokenName) Validate() error { return match("token", string(n), slugPattern) }

// TokenRoles are the roles a token may have. Executors have no place at the HTTP edge.
func TokenRoles() []Role { return []Role{RoleHost, RoleGateway, RoleOperator, RoleObserver} }

// TokenAdded makes a bearer token known (scope _profile). Its secret is kept nowhere.
type TokenAdded struct {
	Name TokenName `json:"name"`
	Role Role      `json:"role"`
	// Digest is the SHA-256 of the secret, which is 256 random bits.
	Digest string `json:"digest"`
	// ExpiresAt is when it is no longer taken; absent means never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// TokenRevoked ends a token for good; streams that it opened are cut (scope _profile).
type TokenRevoked struct {
	Name   TokenName `json:"name"`
	Reason string    `json:"reason,omitempty"`
}

// AddToken makes a token known by the digest of its secret, which the caller made. Sent
// by operators. Answer: [TokenView].
type AddToken struct {
	Name TokenName `json:"name"`
	Role Role      `json:"role"`
	// Digest is the SHA-256 of the secret, in small hexadecimal letters.
	Digest string `json:"digest"`
	// TTLMS is how long the token is taken, by the bus's clock. 0: until it is revoked.
	TTLMS int64 `json:"ttl_ms,omitempty"`
}

// RevokeToken ends a token. One that is revoked already stays as it is. Sent by
// operators. Answer: [TokenView].
type RevokeToken struct {
	Name   TokenName `json:"name"`
	Reason string    `json:"reason,omitempty"`
}

// TokenList asks for the profile's tokens, ended ones included. Answer: [Tokens].
type TokenList struct{}

// Tokens is the list of tokens, in order of name.
type Tokens struct {
	Tokens []TokenView `json:"tokens"`
}

// TokenState is what a token is good for now.
type TokenState string

// What a token is good for now.
const (
	TokenUsable  TokenState = "usable"
	TokenExpired TokenState = "expired"
	TokenGone    TokenState = "revoked"
)

// TokenView is what is known of a token.
type TokenView struct {
	Name  TokenName  `json:"name"`
	Role  Role       `json:"role"`
	State TokenState `json:"state"`
	// AddedAt is when it was added, AddedBy by whom.
	AddedAt   time.Time     `json:"added_at"`
	AddedBy   PrincipalName `json:"added_by"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"` // absent means never
	RevokedAt time.Time     `json:"revoked_at,omitzero"` // absent while it is not revoked
}
