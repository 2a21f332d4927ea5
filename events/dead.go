package events

import "time"

// DeadList asks for the dead letters of the profile: input that was refused although it
// could be corrected. Operators only; they may hold what others sent. Answer:
// [DeadLetters].
type DeadList struct {
	// Principal is whose input is wanted; empty for everyone's.
	Principal PrincipalName `json:"principal,omitempty"`
	// After is the sequence of the last letter of the page before.
	After Sequence `json:"after,omitempty"`
	// Limit is 1 to 1,000; default 1,000.
	Limit int `json:"limit,omitempty"`
}

// DeadLetters answers [DeadList], oldest first, without the input itself.
type DeadLetters struct {
	// Letters of this page.
	Letters []DeadLetter `json:"letters"`
	// More: there are later ones.
	More bool `json:"more,omitempty"`
}

// DeadShow asks for one dead letter with its input. Operators only. Answer: [DeadLetter].
type DeadShow struct {
	Sequence Sequence `json:"sequence"`
}

// DeadLetter is refused input with the reason.
type DeadLetter struct {
	// Sequence names the letter.
	Sequence Sequence `json:"sequence"`
	// Time is when it was refused.
	Time time.Time `json:"time"`
	// Principal is who sent it, proven.
	Principal PrincipalName `json:"principal"`
	// Command is what the subject asked for, also if there is no such command.
	Command Type `json:"command"`
	// Code is that of the refusal.
	Code Code `json:"code"`
	// Message says what was wrong.
	Message string `json:"message"`
	// Path says where in the data; empty if it was not about the data.
	Path string `json:"path,omitempty"`
	// Bytes is the size of the input; 0 also for input that was too large to keep.
	Bytes int `json:"bytes"`
	// Input is the data as it came; in a list it is left out.
	Input []byte `json:"input,omitempty"`
}

// DeadDrop removes dead letters for good. Operators only. Answer: [DeadDropped].
type DeadDrop struct {
	// Sequences are the letters to remove, at most 1,000.
	Sequences []Sequence `json:"sequences"`
}

// DeadDropped answers [DeadDrop].
type DeadDropped struct {
	// Dropped is how many were there and are gone.
	Dropped int `json:"dropped"`
}
