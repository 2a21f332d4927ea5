// Package stdio is a chat platform that a plugin process speaks for, in any language, by
// lines of JSON on its standard input and output. docs/platforms.md has the lines.
//
// # Model
//
// [Plugin] starts the process when it is to serve, and ends it when it is to serve no
// more: its standard input is closed, and it is killed if it has not ended in time. What
// it writes to standard error goes to the log. A process that ends, or breaks the rules of
// the lines, is an error of Serve; the bridge starts it again.
//
// # Guaranteed
//
// A message is answered "taken" after the bus has it. Sends wait for the process and are
// matched to their answers by id. When Serve returns, the process has ended.
package stdio
