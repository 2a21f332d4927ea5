// Package snapshot keeps projections of the log, so that a start need not fold all of
// it: the states of single sessions, and an index of all sessions.
//
// # Model
//
// A snapshot is a shortcut and never the truth. It says of which log it is (when its
// stream was made, and the store's generation), by which set of schemas and which fold
// it was made, and how far it goes; whoever uses one holds the log's own message at that
// place against it, and reads on from there. What does not fit is as good as none.
//
// The index is written in parts: segments, of which one holds the briefs of
// [SegmentSlots] sessions and is written anew when one of them changed, and pages of
// names and ids, which only grow. A manifest names the parts that belong together by
// their sequences. Each part has two places, which are written in turn, and so has the
// manifest: a kill at any moment leaves the index before.
//
// # Not guaranteed
//
// That what was written is there after a kill: the stream is not synced. Then the index
// before is used, or none.
package snapshot
