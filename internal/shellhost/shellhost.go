package shellhost

import (
	"context"
	"fmt"
	"log/slog"

	"keryx/client"
	"keryx/events"
)

// Turn is what the host needs of a turn; *client.Turn is one.
type Turn interface {
	// Exec runs a command in the session's target and hands out its output in order. It
	// stops the command when ctx ends, and waits for its end.
	Exec(ctx context.Context, spec events.ExecSpec, fn func(client.Chunk)) (events.ExecExited, error)
	// Part publishes a piece of the reply.
	Part(text string) error
}

// Handler returns the handler of turns for a [client.HostConfig]. A nil logger means
// slog.Default.
func Handler(logger *slog.Logger) func(context.Context, *client.Turn) client.Result {
	if logger == nil {
		logger = slog.Default()
	}
	return func(ctx context.Context, t *client.Turn) client.Result { return Run(ctx, t, t.Items, logger) }
}

// Run runs the messages of a turn, one after the other, until one does not complete.
func Run(ctx context.Context, t Turn, items []events.Item, logger *slog.Logger) client.Result {
	out := &output{turn: t, logger: logger}
	var r client.Result
	for _, item := range items {
		if !isCommand(item.Kind) {
			out.say(item.Body.Text + "\n")
			r = client.Result{Outcome: events.OutcomeCompleted}
			continue
		}
		r = runOne(ctx, t, out, item.Body.Text)
		if r.Outcome != events.OutcomeCompleted {
			break
		}
	}
	if r.Outcome == "" {
		r.Outcome = events.OutcomeCompleted // no messages: nothing to do
	}
	text, cut := out.reply.text()
	r.Reply, r.ReplyTruncated = text, cut || out.lost
	return r
}

// isCommand reports whether the text of an item is to be run: that a job has ended, or
// what a setup left, is only to be told.
func isCommand(k events.ItemKind) bool {
	return k != events.ItemJobExit && k != events.ItemSetupReceipt
}

func runOne(ctx context.Context, t Turn, out *output, text string) client.Result {
	out.begin()
	// "--" ends the shell's own options: a text may begin with a dash.
	exited, err := t.Exec(ctx, events.ExecSpec{Argv: []string{"/bin/sh", "-c", "--", text}}, out.chunk)
	out.end(exited.Streams)
	return resultOf(ctx, exited, err)
}

// resultOf tells how a turn ends by how its command did.
func resultOf(ctx context.Context, e events.ExecExited, err error) client.Result {
	failed, aborted := events.OutcomeFailed, events.OutcomeAborted
	switch {
	case ctx.Err() != nil:
		return client.Result{Outcome: aborted, Error: context.Cause(ctx).Error()}
	case err != nil:
		return client.Result{Outcome: failed, Error: err.Error()}
	case e.TimedOut:
		return client.Result{Outcome: aborted, Error: "timed out"}
	case e.Stopped:
		return client.Result{Outcome: aborted, Error: "stopped"}
	case e.Signal != "":
		return client.Result{Outcome: aborted, Error: "killed by " + e.Signal}
	case e.ExitCode != 0:
		return client.Result{Outcome: failed, Error: fmt.Sprintf("exit status %d", e.ExitCode)}
	}
	return client.Result{Outcome: events.OutcomeCompleted}
}

// output makes pieces of the reply, and the reply, of the chunks of commands.
type output struct {
	turn    Turn
	logger  *slog.Logger
	reply   reply
	streams map[string]*stream
	order   []*stream
	lost    bool // some output was not kept
	quiet   bool // pieces cannot be published
}

// stream is what was seen of one stream of one command.
type stream struct {
	name    string
	offset  int64
	decoder decoder
}

func (o *output) begin() { o.streams, o.order = make(map[string]*stream), nil }

func (o *output) stream(name string) *stream {
	s := o.streams[name]
	if s == nil {
		s = &stream{name: name}
		o.streams[name] = s
		o.order = append(o.order, s)
	}
	return s
}

func (o *output) chunk(c client.Chunk) {
	s := o.stream(c.Stream)
	o.gap(s, c.Offset)
	s.offset = c.Offset + int64(len(c.Data))
	o.say(s.decoder.text(c.Data))
}

// gap says so where output up to an offset was not kept.
func (o *output) gap(s *stream, offset int64) {
	if offset <= s.offset {
		return
	}
	o.lost = true
	o.say(fmt.Sprintf("%s\n[... %d bytes of %s were not kept ...]\n", s.decoder.rest(), offset-s.offset, s.name))
}

// end says what is missing at the ends of the streams.
func (o *output) end(all []events.StreamSummary) {
	for _, sum := range all {
		o.gap(o.stream(sum.Name), sum.Bytes)
	}
	for _, s := range o.order {
		o.say(s.decoder.rest())
	}
}

func (o *output) say(text string) {
	if text == "" {
		return
	}
	o.reply.add(text)
	if o.quiet {
		return
	}
	if err := o.turn.Part(text); err != nil {
		// The reply is whole without its pieces: say so once and go on.
		o.quiet = true
		o.logger.Warn("the reply is not streamed", "error", err)
	}
}
