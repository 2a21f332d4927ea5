// Package termtext makes text from elsewhere safe to print on a terminal.
//
// [Visible] spells out every character that a terminal or a reader's eye would act on
// instead of showing it: control characters, escape sequences, text direction, broken
// UTF-8. [Filter] does the same for a stream and lets lines, tabs and colors through.
// [Cut] and [Width] measure in terminal cells.
//
// Guaranteed: no output of Visible or Filter moves the cursor, changes a mode of the
// terminal, asks it a question or sets its title. Not guaranteed: that two different
// texts look different, for a backslash in the text stays as it is.
package termtext
