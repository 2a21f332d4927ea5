package archive

import "fmt"

// Rechain makes lines of kinds and bodies, with the chain and the content hashes that they
// need: a forgery.
func Rechain(bodies []string) ([]byte, error) {
	if len(bodies)%2 != 0 {
		return nil, fmt.Errorf("%d kinds and bodies", len(bodies))
	}
	var content Hash
	for i := 0; i < len(bodies); i += 2 {
		if bodies[i] != kindHeader && bodies[i] != kindEnd {
			content = content.next(bodies[i], []byte(bodies[i+1]))
		}
	}
	var out []byte
	var chain Hash
	for i := 0; i < len(bodies); i += 2 {
		body := []byte(rehash(bodies[i+1], content))
		if bodies[i] != kindHeader && bodies[i] != kindEnd {
			body = []byte(bodies[i+1])
		}
		chain = chain.next(bodies[i], body)
		out = appendLine(out, chain, bodies[i], body)
	}
	return out, nil
}

// rehash puts the content hash into a header or end.
func rehash(body string, content Hash) string {
	const name = `"content":"`
	for i := 0; i+len(name) <= len(body); i++ {
		if body[i:i+len(name)] == name {
			at := i + len(name)
			return body[:at] + content.String() + body[at+2*len(content):]
		}
	}
	return body
}
