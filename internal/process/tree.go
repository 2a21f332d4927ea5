package process

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"keryx/events"
)

// tree finds and signals the processes that come from one leader, where there is no
// control group. The leader must not be reaped while the tree is in use.
type tree struct {
	leader identity
	mark   string
	tag    tag
	// known are those seen before: one whose parent died since is still ours.
	known map[identity]bool
	// ended are the zombies of the last look: they have not forked since.
	ended map[identity]bool
	calm  int // looks in a row that can have missed nothing
}

const (
	calmLooks = 2
	// restlessLooks is how many looks in a row are enough on a machine where processes
	// end all the time.
	restlessLooks = 10
)

func newTree(pid int, mark string, t tag) (*tree, error) {
	s, err := readStatus(pid)
	if err != nil {
		return nil, err
	}
	return &tree{leader: s.identity(), mark: mark, tag: t, known: map[identity]bool{s.identity(): true}}, nil
}

// certain reports whether so many looks in a row that found nothing are enough. A list
// of processes is not made in one moment: one that was listed, forked and ended before
// it was read leaves a child that is in no list. So looks count in which nothing ended;
// and two, because a child may get a number that the list has already passed.
func (t *tree) certain(looks int) bool { return t.calm >= calmLooks || looks >= restlessLooks }

// note remembers whether a look can have missed a child of what had just ended.
func (t *tree) note(all []status, gone int) {
	ended := map[identity]bool{}
	fresh := gone > 0
	for _, s := range all {
		if s.dead && s.start >= t.leader.start {
			id := s.identity()
			ended[id] = true
			fresh = fresh || !t.ended[id] && id != t.leader
		}
	}
	t.ended = ended
	if t.calm++; fresh {
		t.calm = 0
	}
}

// empty says what it proves that members found none.
func (t *tree) empty() events.Cleanup { return events.CleanupSwept }

func (t *tree) await(d time.Duration) { <-time.After(d) }

func (t *tree) remove() error { return nil }

// members returns the living processes of the tree, the leader among them.
func (t *tree) members() ([]status, error) {
	all, gone, err := processes()
	if err != nil {
		return nil, err
	}
	t.note(all, gone)
	byPID := make(map[int]status, len(all))
	for _, s := range all {
		byPID[s.pid] = s
	}
	// Oldest first, so that a parent is known before its children.
	slices.SortFunc(all, func(a, b status) int {
		if c := cmp.Compare(a.start, b.start); c != 0 {
			return c
		}
		return a.pid - b.pid
	})
	return t.collect(all, byPID), nil
}

func (t *tree) collect(all []status, byPID map[int]status) []status {
	var found []status
	for again := true; again; {
		again = false
		for _, s := range all {
			if id := s.identity(); !t.known[id] && t.ours(s, byPID) {
				t.known[id], again = true, true
			}
		}
	}
	for _, s := range all {
		if t.known[s.identity()] && !s.dead {
			found = append(found, s)
		}
	}
	return found
}

// ours reports whether a process comes from the leader: it is in its session or group,
// its parent is ours, or it carries the tag or the mark. None can be older than the
// leader.
func (t *tree) ours(s status, byPID map[int]status) bool {
	switch {
	case s.start < t.leader.start:
		return false
	case s.session == t.leader.pid || s.group == t.leader.pid:
		return true
	}
	if parent, ok := byPID[s.parent]; ok && t.known[parent.identity()] {
		return true
	}
	if s.dead {
		return false
	}
	return t.tag.on(s.pid) || t.mark != "" && carries(s.pid, t.mark)
}

// signal sends sig to the leader's group, and to each member outside of it.
func (t *tree) signal(sig unix.Signal) error {
	// Before the group: a child that loses its parent could not be found by it later.
	members, err := t.members()
	group := t.signalGroup(sig)
	for _, m := range members {
		if m.group != t.leader.pid {
			err = errors.Join(err, signalOne(m.identity(), sig))
		}
	}
	return errors.Join(err, group)
}

// signalGroup signals the whole group in one step, so that a member that forks cannot
// escape. The leader is ours and not reaped, hence so is its group.
func (t *tree) signalGroup(sig unix.Signal) error {
	if pid := t.leader.pid; pid <= 1 || pid == unix.Getpgrp() {
		return errors.New("signal group: not a group of its own")
	}
	if err := unix.Kill(-t.leader.pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// signalOne signals a process that is still the one it was: the descriptor pins it, the
// start time proves it.
func signalOne(id identity, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(id.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if now, err := readStatus(id.pid); err != nil || now.identity() != id {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
