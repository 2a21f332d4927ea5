package lifecycle

import "time"

// Limits of a session.
const (
	// AnswerLife is how long a command's answer is remembered (design section 5).
	AnswerLife = 24 * time.Hour
	// MaxAnswers is how many answers of a session are remembered.
	MaxAnswers = 4096
	// KeptTurns and KeptExecs are how many ended ones of a session are kept in memory;
	// those before them are read from the log.
	KeptTurns = 64
	KeptExecs = 64
	// MaxNames is how many current names a session may have, runtime ids not counted.
	MaxNames = 128
	// MaxRuntimes is how many of its runtime ids a session remembers; the records of
	// older ones still lead to it.
	MaxRuntimes = 64
	// MaxNameBytes is the largest external id.
	MaxNameBytes = 1024
	// DefaultLeaseTTL is how long a host may be silent, unless it says otherwise.
	DefaultLeaseTTL = 15 * time.Second
	// MinLeaseTTL is the least a host may ask for.
	MinLeaseTTL = 2 * time.Second

	// A carry must fit into one event of at most events.MaxData: these are the parts
	// of it that could grow. Items beyond follow as events of their own.
	carryAnswerBytes = 256 << 10
	carryKeyBytes    = 160 << 10
	carryItemBytes   = 320 << 10
	carryOldNames    = 256
	carryOldBytes    = 64 << 10
	carryArgvBytes   = 1 << 10

	// maxBatch is how many messages the server takes in one atomic batch.
	maxBatch = 1000
)
