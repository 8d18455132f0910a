#!/usr/bin/python3
# gpuraid: which older copies of a member are told from the member: a small
# model, tried exhaustively.
#
# One copy of one member is made at any time, while a session runs or between
# sessions, and given back at an opening, or to readd after the member was
# taken out.  The record of the membership, which membership.py is about, is one
# number here.  It moves at once when a member leaves.  At an opening it is
# proposed to one member after the other, and then accepted likewise, and a
# crash may come in between.
#
#   write   a write gets to all active members
#   save    the superblocks get the next step, one member after the other
#   stop    saves until each member knows of the last step of the others
#   leave   a member is taken out; what was written since its last step counts
#           as missed
#   crash   at any time, so also within a save
#
# What is checked:
#
#   - a member that is none is never taken for an older copy
#   - a copy from before the last clean stop, before the last record, or from
#     before the last step that another knows of is never believed
#   - a copy that is believed lacks only what was written since the last step
#     that all others know of, and the array crashed since: that is what
#     can't be seen, and docs/promises.md says so
#   - what readd brings up to date by the bitmap lacks nothing then
#
# SPDX-License-Identifier: BSD-3-Clause

import sys
from collections import deque, namedtuple

sys.dont_write_bytecode = True

N = 3

# A member: the record that it accepted, whether that lists it as active, the
# step that it brings, the step in what it was proposed, what it knows of each,
# and the writes that it has: a set of numbers.
Disk = namedtuple("Disk", "record active step proposed knows writes")

# up: a session runs.  step: the last one begun.  stored: what is durable on
# each.  saving: members that do not have the step yet, and what the copies of
# this save say of the others.  out: the member that left, or -1.  recent: the
# step when each write ended.  missed: writes that count as missed.
# copy: (member, Disk), or None.  past: how the last session ended.  target: the
# record that a crash left half made, and the members that it has as targets.
# given: the member that is a copy, or -1.  tries: openings in a row that
# crashed.
State = namedtuple("State", "disks up step stored saving out written recent"
                   " missed copy nr record past target given tries")


class Broken(Exception):
    pass


class Model:
    def __init__(self, without=()):
        self.without = set(without)
        self.unseen = 0         # copies that are believed and lack something

    def start(self):
        disk = Disk(1, True, 0, 0, (0,) * N, frozenset())
        return State((disk,) * N, False, 0, (0,) * N, None, -1, False, (),
                     frozenset(), None, 0, 1, None, (0, ()), -1, 0)

    # ---- the rule --------------------------------------------------------

    def known(self, disks, of):
        """Of each member, the greatest step that those of the newest record
        know."""
        newest = max(disks[i].record for i in of)
        return [max(disks[i].knows[j] for i in of
                    if disks[i].record == newest) for j in range(N)]

    def older(self, disk, j, known):
        step = disk.step
        if "accepted" in self.without:
            step = max(step, disk.proposed)
        if "own" in self.without:
            step += 1
        return step < known[j]

    # ---- steps -----------------------------------------------------------

    def active(self, s):
        return [i for i in range(N) if i != s.out]

    def judge(self, s, disks, given):
        """What is known of each, and the members that become targets."""
        known = self.known(disks, range(N))
        newest = max(d.record for d in disks)
        record, before = s.target
        targets = []
        for i in range(N):
            current = disks[i].record == newest
            told = self.older(disks[i], i, known)
            if not current or (newest == record and i in before):
                if not current and not told and disks[i].active:
                    self.covered(s, disks[i])
                targets.append(i)
                continue
            if i != given and current and told:
                raise Broken("member %d is taken for an older copy" % i)
            if current and not told:
                self.believed(s, disks, i)
            if told:
                targets.append(i)
        return known, tuple(targets)

    def covered(self, s, disk):
        if not frozenset(range(s.nr)) - disk.writes <= s.missed:
            raise Broken("a target is covered, and something is not marked")

    def open(self, s, disks, given):
        """All members open."""
        known, _ = self.judge(s, disks, given)
        step = max(max(known), max(d.step for d in disks))
        everything = frozenset(range(s.nr))
        record = s.record + 1
        stored = tuple(max(known[i], disks[i].step) for i in range(N))
        # In force, and every member is brought up to date.
        done = tuple(Disk(record, True, step, step, stored, everything)
                     for i in range(N))
        return s._replace(disks=done, up=True, step=step, stored=(step,) * N,
                          saving=None, out=-1, written=False,
                          recent=(-1,) * s.nr,
                          missed=frozenset(), record=record, copy=None,
                          past=None, target=(0, ()), given=-1, tries=0)

    def open_crashes(self, s, disks, given):
        """The record of an opening with an older copy gets to some."""
        unseen = self.unseen
        known, targets = self.judge(s, disks, given)
        if not targets or self.unseen > unseen or s.tries == 1:
            return
        step = max(max(known), max(d.step for d in disks))
        record = s.record + 1
        stored = tuple(max(known[i], disks[i].step) for i in range(N))
        for some in range(1, 1 << N):
            proposed = tuple(
                d._replace(proposed=step) if some >> i & 1 else d
                for i, d in enumerate(disks))
            yield "proposed to %s" % bin(some), s._replace(
                disks=proposed, copy=None, record=record, given=given,
                tries=s.tries + 1)
            accepted = tuple(
                Disk(record, i not in targets, step, step, stored, d.writes)
                if some >> i & 1
                else d._replace(proposed=step) for i, d in enumerate(disks))
            yield "accepted by %s" % bin(some), s._replace(
                disks=accepted, copy=None, record=record,
                target=(record, targets), given=given,
                tries=s.tries + 1)

    def believed(self, s, disks, i):
        lacks = frozenset(range(s.nr)) - disks[i].writes
        if lacks and s.past != "crash":
            raise Broken("a copy from before a clean stop is believed")
        for j in range(N):
            if any(disks[j].knows[i] > s.recent[w] for w in lacks if j != i):
                raise Broken("a copy from before a step that member %d knows"
                             " of" % j)
        self.unseen += bool(lacks)

    def readd(self, s, disk):
        j = s.out
        if disk == s.disks[j] and self.older(disk, j, s.stored):
            raise Broken("the member itself is taken for an older copy")
        covered = not self.older(disk, j, s.stored) and \
            disk.record == s.disks[j].record
        lacks = frozenset(range(s.nr)) - disk.writes
        if covered and not lacks <= s.missed:
            raise Broken("readd by the bitmap, and something is not marked")

    def write(self, s):
        w = s.nr
        disks = list(s.disks)
        for i in self.active(s):
            disks[i] = disks[i]._replace(writes=disks[i].writes | {w})
        return s._replace(disks=tuple(disks), nr=w + 1, written=True,
                          recent=s.recent + (s.step,),
                          missed=s.missed | ({w} if s.out != -1 else set()))

    def begin_save(self, s):
        step = s.step
        if s.written and "moves" not in self.without:
            step += 1
        knows = s.stored if "told" not in self.without else (0,) * N
        if "kept" in self.without:
            knows = tuple(step if i in self.active(s) else knows[i]
                          for i in range(N))
        return s._replace(step=step, written=False,
                          saving=(tuple(self.active(s)), knows))

    def save_one(self, s, i):
        left, knows = s.saving
        left = tuple(x for x in left if x != i)
        disks = list(s.disks)
        mine = tuple(s.step if x == i else knows[x] for x in range(N))
        disks[i] = disks[i]._replace(step=s.step, knows=mine)
        stored = tuple(s.step if x == i else s.stored[x] for x in range(N))
        return s._replace(disks=tuple(disks), stored=stored,
                          saving=(left, knows) if left else None)

    def save_all(self, s):
        s = self.begin_save(s)
        for i in self.active(s):
            s = self.save_one(s, i)
        return s

    def stop(self, s):
        for _ in range(1 if "leave-open" in self.without else 2):
            s = self.save_all(s)
        return s._replace(up=False, past="clean")

    def leave(self, s, j):
        missed = frozenset(w for w in range(s.nr)
                           if s.recent[w] >= s.stored[j])
        if "marked" in self.without:
            missed = frozenset()
        record = s.record + 1
        disks = tuple(d if i == j else
                      Disk(record, True, s.step, s.step, s.stored, d.writes)
                      for i, d in enumerate(s.disks))
        return s._replace(disks=disks, out=j, record=record, missed=missed,
                          saving=None)

    def steps(self, s):
        if s.copy is None and s.given == -1:
            for j in range(N):
                yield "copy %d" % j, s._replace(copy=(j, s.disks[j]))
        if not s.up:
            yield "open", self.open(s, s.disks, s.given)
            yield from self.open_crashes(s, s.disks, s.given)
            if s.copy is not None:
                j, disk = s.copy
                disks = tuple(disk if i == j else d
                              for i, d in enumerate(s.disks))
                yield "open with the copy of %d" % j, self.open(s, disks, j)
                for label, after in self.open_crashes(s, disks, j):
                    yield "with the copy of %d, %s" % (j, label), after
            return
        if s.out != -1:
            if s.copy is not None and s.copy[0] == s.out:
                self.readd(s, s.copy[1])
            self.readd(s, s.disks[s.out])
        if s.nr < 3:
            yield "write", self.write(s)
        if s.saving is None:
            if s.step < 4:
                yield "save", self.begin_save(s)
            yield "stop", self.stop(s)
            if s.out == -1:
                for j in range(N):
                    yield "leave %d" % j, self.leave(s, j)
        else:
            for i in s.saving[0]:
                yield "saved on %d" % i, self.save_one(s, i)
            # One fails in it.
            if s.out == -1 and len(s.saving[0]) == 1:
                yield "leave %d" % s.saving[0][0], \
                    self.leave(s, s.saving[0][0])
        yield "crash", s._replace(up=False, saving=None, past="crash")


def explore(without=(), depth=12):
    model = Model(without)
    known = {model.start()}
    todo = deque([(model.start(), 0, None)])
    while todo:
        state, d, path = todo.popleft()
        try:
            for label, after in model.steps(state):
                if after not in known and d < depth:
                    known.add(after)
                    todo.append((after, d + 1, (label, path)))
        except Broken as e:
            how = []
            while path:
                how.append(path[0])
                path = path[1]
            return model, len(known), (str(e), how[::-1])
    return model, len(known), None


# Each of these must be detected.
WEAKER = {
    "moves": "no step at a stop",
    "told": "the copies do not say what is known of the others",
    "kept": "a copy says of another a step that may not be durable there",
    "marked": "what was written since the last step does not count as missed",
    "own": "a difference of one is allowed",
    "accepted": "the step of a proposal counts as the member's own",
    "leave-open": "one save at a stop",
}


def main():
    bad = 0
    model, nr, broken = explore()
    print("%d states, %d copies that can't be seen%s" %
          (nr, model.unseen, ": " + str(broken) if broken else ""))
    bad += broken is not None or model.unseen == 0
    for name, what in WEAKER.items():
        model, nr, broken = explore((name,))
        print("%s, %s: %s" % (name, what, broken or "NOT DETECTED"))
        bad += broken is None
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
