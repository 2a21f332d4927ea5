package events

// HandlerVerb is what the authority tells a handler.
type HandlerVerb string

// What the authority tells a handler.
const (
	HandlerInvoke HandlerVerb = "invoke"
)

// HandlerSubject returns kx.handler.<profile>.<principal>.<instance>.<verb>.
func HandlerSubject(p Profile, n PrincipalName, i Instance, v HandlerVerb) string {
	return join("kx", "handler", string(p), string(n), string(i), string(v))
}

// HandlerAll returns the pattern of everything told to one handler instance.
func HandlerAll(p Profile, n PrincipalName, i Instance) string {
	return join("kx", "handler", string(p), string(n), string(i)) + ".>"
}

// HandlerAny returns the pattern of everything told to any instance of a handler.
func HandlerAny(p Profile, n PrincipalName) string {
	return join("kx", "handler", string(p), string(n)) + ".>"
}
