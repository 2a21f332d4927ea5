// Package travel shows a session as it was: it folds the session's record up to a
// [Moment] and compares what the fold says at two moments.
//
// The log is the truth, and the fold is that of package lifecycle, the same that the bus
// decides by. So [To] the newest event gives the state that the bus has now, and the same
// record read elsewhere, such as an imported one, gives the same state.
//
// Guaranteed: nothing is changed; memory is that of one state and one page. An event that
// cannot be decoded is passed, as the bus passes it, and counted in [Point.Holes].
//
// Not guaranteed: moments before what is still kept. They are refused, not guessed.
package travel
