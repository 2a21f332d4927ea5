// Package screen keeps what a terminal shows, so that who comes late is given a picture
// of it and not the history: a history asks the viewer's terminal the program's old
// questions, begins in the middle of a sequence, and lacks the modes set long before.
//
// The model is that of charmbracelet/x/vt. A [Screen] cuts output at the borders of
// characters and sequences before the model sees it, and ends a picture with what is left
// over, so that the output that follows goes on where it was cut.
//
// Guaranteed: a picture begins with a reset, has the modes in force, the lines that were
// scrolled away (bounded), the screen, and the cursor; painting it twice shows the same
// as once.
//
// Not guaranteed: what the model does not tell, which is the main screen below the
// alternate one, scroll margins, tab stops, character sets, the saved cursor, and the
// colours that the program will write with next.
package screen
