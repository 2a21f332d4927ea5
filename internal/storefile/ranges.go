package storefile

import "keryx/events"

// Range is sequences from one to another, both included.
type Range struct {
	From events.Sequence `json:"from"`
	To   events.Sequence `json:"to"`
}

// ranges are ascending and do not touch.
type ranges []Range

// add takes a sequence that is above all before.
func (rs *ranges) add(s events.Sequence) {
	if n := len(*rs); n > 0 && (*rs)[n-1].To+1 == s {
		(*rs)[n-1].To = s
		return
	}
	*rs = append(*rs, Range{s, s})
}

// join appends ranges that are above all before.
func (rs *ranges) join(more ranges) {
	for _, r := range more {
		if n := len(*rs); n > 0 && (*rs)[n-1].To+1 == r.From {
			(*rs)[n-1].To = r.To
			continue
		}
		*rs = append(*rs, r)
	}
}

// count of the sequences.
func (rs ranges) count() uint64 {
	var n uint64
	for _, r := range rs {
		n += uint64(r.To-r.From) + 1
	}
	return n
}

// has reports whether a sequence is in one of the ranges.
func (rs ranges) has(s events.Sequence) bool {
	low, high := 0, len(rs)
	for low < high {
		mid := (low + high) / 2
		switch r := rs[mid]; {
		case s < r.From:
			high = mid
		case s > r.To:
			low = mid + 1
		default:
			return true
		}
	}
	return false
}

// between returns what is missing between the first and the last.
func (rs ranges) between() ranges {
	var out ranges
	for i := 1; i < len(rs); i++ {
		out = append(out, Range{rs[i-1].To + 1, rs[i].From - 1})
	}
	return out
}
