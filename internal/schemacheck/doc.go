// Package schemacheck holds events and commands in files to their schemas.
//
// It takes what the programs of this repository and others write: JSON lines, one JSON
// document, several behind each other, and lists of events. A line that is no JSON does not
// keep the others from being looked at. What is wrong is told with its line and the path in
// it; the first fault of each value is. It is pure: it reads from what it is given.
package schemacheck
