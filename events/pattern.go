package events

// The patterns below are what the rights of principals are made of.

// CmdAll returns the pattern of every command of one principal.
func CmdAll(p Profile, n PrincipalName) string {
	return join("kx", "cmd", string(p), string(n)) + ".*.*"
}

// InboxAll returns the pattern of every answer to one principal.
func InboxAll(p Profile, n PrincipalName) string { return InboxPrefix(p, n) + ".>" }

// HostAny returns the pattern of everything told to any instance of one host.
func HostAny(p Profile, n PrincipalName) string {
	return join("kx", "host", string(p), string(n)) + ".>"
}

// ExecAny returns the pattern of everything told to any instance of one executor.
func ExecAny(p Profile, n PrincipalName) string {
	return join("kx", "exec", string(p), string(n)) + ".>"
}

// PolicyAny returns the pattern of everything put to any instance of one who is asked
// before a tool runs.
func PolicyAny(p Profile, n PrincipalName) string {
	return join("kx", "policy", string(p), string(n)) + ".>"
}

// OutAll returns the pattern of all output in a profile.
func OutAll(p Profile) string { return join("kx", "out", string(p)) + ".>" }

// OutBy returns the pattern of all output of one executor.
func OutBy(p Profile, executor PrincipalName) string {
	return join("kx", "out", string(p), string(executor)) + ".*.*"
}

// OutOfSession returns the pattern of the output of every exec that one executor runs
// for a session.
func OutOfSession(p Profile, executor PrincipalName, s SessionID) string {
	return join("kx", "out", string(p), string(executor), string(s)) + ".*"
}

// PartsAll returns the pattern of every reply piece in a profile.
func PartsAll(p Profile) string { return join("kx", "part", string(p)) + ".>" }

// PartsBy returns the pattern of every reply piece of one host.
func PartsBy(p Profile, host PrincipalName) string {
	return join("kx", "part", string(p), string(host)) + ".*.*"
}

// TTYSubject returns kx.tty.<profile>.<executor>.<principal>.<session>.<exec>: what a
// principal types into a terminal.
func TTYSubject(p Profile, executor, n PrincipalName, s SessionID, e ExecID) string {
	return join("kx", "tty", string(p), string(executor), string(n), string(s), string(e))
}

// TTYBy returns the pattern of all that one principal types, whoever runs the terminal.
func TTYBy(p Profile, n PrincipalName) string {
	return join("kx", "tty", string(p)) + ".*." + join(string(n)) + ".*.*"
}

// TTYTo returns the pattern of all that is typed into one executor's terminals.
func TTYTo(p Profile, executor PrincipalName) string {
	return join("kx", "tty", string(p), string(executor)) + ".>"
}

// TypedSubject returns kx.typed.<profile>.<executor>.<principal>.<session>.<exec>: what the
// executor says became of what a principal typed.
func TypedSubject(p Profile, executor, n PrincipalName, s SessionID, e ExecID) string {
	return join("kx", "typed", string(p), string(executor), string(n), string(s), string(e))
}

// TypedBy returns the pattern of all that one executor says of what was typed.
func TypedBy(p Profile, executor PrincipalName) string {
	return join("kx", "typed", string(p), string(executor)) + ".*.*.*"
}

// TypedTo returns the pattern of all that is said of what one principal typed.
func TypedTo(p Profile, n PrincipalName) string {
	return join("kx", "typed", string(p)) + ".*." + join(string(n)) + ".*.*"
}

// PatternKVLeases is where the lease bucket keeps its keys; it is republished to
// [PatternLease].
const PatternKVLeases = "$KV." + BucketLeases + ".>"
