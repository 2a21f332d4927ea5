// Package targetfile reads the targets of an executor from YAML files, one target a file.
//
// Reading is strict: an unknown key, a key twice, a value of another type, no value, an
// anchor, and a second document are errors that name file, line and column. Nothing is
// converted: a number where text is expected has to be quoted. [Parse] looks at the text
// alone; [Read] also at what it names on this machine.
//
// [Files] remembers the last good version of each file. A file that becomes unusable
// keeps that version in force, together with what is wrong; so does one that takes the
// name of another's target. A file that is removed takes its target with it.
//
// The format is described in docs/targets.md, whose examples a test reads.
package targetfile
