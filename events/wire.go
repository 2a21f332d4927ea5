package events

// Headers of messages that are not CloudEvents: answers, pages and output chunks.
const (
	// HeaderStatus is on every answer: [StatusOK] with the answer as JSON body, or
	// [StatusError] with an [Error] as JSON body.
	HeaderStatus = "Keryx-Status"
	// HeaderPage is on the last message of a page and has the value [PageEnd]. The
	// messages before it are as stored, each with [HeaderSequence].
	HeaderPage = "Keryx-Page"
	// HeaderSequence is the stream sequence of a message in a page.
	HeaderSequence = "Keryx-Sequence"
	// HeaderStream names the stream of an output chunk: stdout, stderr or pty.
	HeaderStream = "Keryx-Stream"
	// HeaderOffset is the byte offset of an output chunk within its stream.
	HeaderOffset = "Keryx-Offset"
	// HeaderChunk numbers the chunks of an exec over all its streams, from 1, in the
	// order in which they were read.
	HeaderChunk = "Keryx-Chunk"
	// HeaderTime is when the first byte of an output chunk was read, in microseconds of
	// the Unix epoch, by the executor's clock.
	HeaderTime = "Keryx-Time"
	// HeaderSize is the size of the terminal when the first byte of an output chunk was
	// read, as ROWSxCOLS.
	HeaderSize = "Keryx-Size"
	// HeaderPart numbers the pieces of a reply (kx.part) from 1.
	HeaderPart = "Keryx-Part"
)

// Values of [HeaderStatus] and [HeaderPage].
const (
	StatusOK    = "ok"
	StatusError = "error"
	PageEnd     = "end"
)

// Limits of what one message may carry.
const (
	// MaxData is the largest data of a command or event, 1 MiB; more is too_large.
	MaxData = 1 << 20
	// MaxHeaders is the largest sum of header names and values, 32 KiB.
	MaxHeaders = 32 << 10
	// MaxBody is the largest text of an item, 256 KiB.
	MaxBody = 256 << 10
	// MaxChunk is the largest output chunk, 64 KiB.
	MaxChunk = 64 << 10
	// MaxPayload is what the server accepts of one message, 4 MiB, so that the
	// authority can refuse too_large without the connection being cut.
	MaxPayload = 4 << 20
)
