// Package asciicast writes recordings of terminals in the format asciicast v2, which
// `asciinema play` plays: a header, then one event a line.
//
// A recording is text, a terminal's output is bytes: a character that is split over two
// pieces is put together, and a byte that is part of none becomes U+FFFD. Who needs the
// bytes reads the output itself. A Writer is not safe for concurrent use.
package asciicast
