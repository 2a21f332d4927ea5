// Package authority is the only writer of the logs. It takes commands, decides on
// them with package lifecycle, appends the outcome with package sessionlog, and
// tells hosts and executors what follows.
//
// # Model
//
// One authority is active at a time; it holds the lease bus.authority while others
// stand by. The lease is for liveness; safety comes from the expected sequence of
// every append, so that two overlapping authorities cannot both write one step.
//
// While active it keeps every session's folded state in memory. A session's
// commands run one after another in its lane; lanes run beside each other. A lane
// decides, appends, folds, answers, and then settles what is owed: session.idle, the
// next offer, an expiry. What is owed is a function of the state, so an authority
// that takes over resumes it.
//
// A command's caller is proven by its subject, which only that principal may
// publish on. The server checks no reply subjects, so the authority answers only to
// the caller's own inbox and drops, with an audit record, whatever names another.
//
// # Guaranteed
//
// A command that was answered is on disk. The same command again gets the same
// answer. A refusal has changed nothing. Commands of one caller to one session are
// taken in the order of sending.
//
// # Not guaranteed
//
// An order between sessions. That a command without an answer was not done: its
// sender repeats it with the same id and learns.
//
// # Kill points
//
// Between an append and its answer: the sender repeats, the fold answers. Between an
// append and what it owes: the next term owes it still. Between an append and the
// message to a host or executor: the next term sends it again; both know the id.
package authority
