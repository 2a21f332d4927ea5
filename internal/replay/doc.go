// Package replay tells a session's record to a person: one line per event, with when,
// where in the record, epoch, type, who, and the one thing that matters.
//
// [Line] makes a line of one event. A [Writer] writes many, knows how long a turn took
// because it saw it start, and says explicitly where the record has a hole (an event
// that cannot be decoded) or a gap (events no longer kept). As JSON it writes each event
// as one structured CloudEvent with its sequence and ordinal, payload bytes untouched.
// [Print] reads the record of a scope from the bus, [Tail] goes on live.
//
// Guaranteed: lines hold no character that a terminal would act on except the colors
// the Writer itself sets, whatever the events contain; each event of the asked range is
// written once, in order, or named as missing. Not guaranteed: that a line shows all of
// an event. JSON does.
package replay
