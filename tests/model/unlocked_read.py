#!/usr/bin/python3
# gpuraid: reads without the array lock, as a small model, tried exhaustively.
#
# Clients' threads begin reads of a seat that is open; the thread that has the
# array lock closes it, then its member, gives the seat to another member and
# opens it again, or ends the ticks that watch reads: array/seats/unlocked.h,
# array/watch/overdue.c.  Every order of their single steps is tried, with steps
# as small as one load, store or addition that other threads can see.
#
#   tests/model/unlocked_read.py            all of it, and each rule left out
#
# While a read is under way its seat has the member that it began with, and the
# ticks go on.  When all reads have ended the seat has no users.
#
# What the model leaves out: what is read.  A line or a checksum that changes
# meanwhile is no matter of order (array/request/unlocked.c).
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import sys
from collections import namedtuple

RULES = {
    'counts-first': 'a reader counts its read, and then looks whether the seat '
                    'still is open',
    'looks-again': 'it does look again',
    'closes-first': 'the seat is closed, and then its users are looked at',
    'keeps-count': 'a seat for another member keeps the counts of reads',
    'looks-twice': 'before the ticks end the seat is closed, and reads are '
                   'looked for once more',
}
READERS, READS = 2, 2

# is_open: the seat may be read without the lock.  member: which one it has; 0:
# none.  reads: of each reader, where it is, which member it reads (0: none),
# and how many more it begins.  todo: what the holder of the lock will do.
State = namedtuple('State', 'is_open member begun ended ticks readers pc todo')
Reader = namedtuple('Reader', 'pc member left')


class Broken(Exception):
    pass


class Seat:
    def __init__(self, without=()):
        self.without = set(without)

    def keeps(self, rule):
        return rule not in self.without

    def start(self):
        return State(True, 1, 0, 0, True, (Reader('idle', 0, READS),) * READERS,
                     'idle', frozenset(('replace', 'rest')))

    # ---- a reader

    def reader(self, s, i):
        r = s.readers[i]

        def to(pc, state=s, **changes):
            return state._replace(
                readers=s.readers[:i] + (r._replace(pc=pc, **changes),) +
                s.readers[i + 1:])

        first, second = (('count', 'look-again')
                         if self.keeps('counts-first') else
                         ('look-again', 'count'))
        if r.pc == 'idle':
            if r.left == 0:
                return None
            return to('look', left=r.left - 1)
        if r.pc == 'look':
            return to(first if s.is_open else 'idle')
        if r.pc == 'count':
            return to(second if second == 'look-again' else 'read',
                      s._replace(begun=s.begun + 1))
        if r.pc == 'look-again':
            if not s.is_open and self.keeps('looks-again'):
                return to('undo' if first == 'count' else 'idle')
            return to('read' if first == 'count' else second)
        if r.pc == 'undo':
            return to('idle', s._replace(ended=s.ended + 1))
        if r.pc == 'read':
            return to('reads', member=s.member)
        assert r.pc == 'reads', r.pc
        return to('idle', s._replace(ended=s.ended + 1), member=0)

    # ---- the holder of the lock

    def holder(self, s):
        pc, users = s.pc, s.begun - s.ended
        if pc == 'idle':
            for what in s.todo:
                left = s._replace(todo=s.todo - {what})
                if what == 'rest':
                    yield left._replace(pc='rest-look')
                elif self.keeps('closes-first'):
                    yield left._replace(pc='close')
                else:
                    yield left._replace(pc='users')
        elif pc == 'close':
            to = 'users' if self.keeps('closes-first') else 'close-member'
            yield s._replace(is_open=False, pc=to)
        elif pc == 'users':             # if it has some: at the next tick
            if users == 0:
                yield s._replace(pc='close-member'
                                 if self.keeps('closes-first') else 'close')
        elif pc == 'close-member':
            yield s._replace(member=0, pc='reuse')
        elif pc == 'reuse':
            if not self.keeps('keeps-count'):
                s = s._replace(begun=0, ended=0)
            yield s._replace(member=2, pc='open')
        elif pc == 'open':
            # A look under the lock: its own read has the ticks go on.
            yield s._replace(ticks=True, pc='opens')
        elif pc == 'opens':
            yield s._replace(is_open=True, pc='idle')
        elif pc == 'rest-look':
            yield s._replace(pc='idle' if users > 0 else 'rest-close')
        elif pc == 'rest-close':
            to = 'rest-again' if self.keeps('looks-twice') else 'rest'
            yield s._replace(is_open=False, pc=to)
        elif pc == 'rest-again':
            yield s._replace(pc='rest' if users == 0 else 'idle')
        else:
            assert pc == 'rest', pc
            yield s._replace(ticks=False, pc='open')

    def steps(self, s):
        for i in range(READERS):
            after = self.reader(s, i)
            if after is not None:
                yield after
        yield from self.holder(s)

    def check(self, s):
        for r in s.readers:
            if r.pc != 'reads':
                continue
            if r.member == 0 or r.member != s.member:
                raise Broken('a member is closed under a read')
            if not s.ticks:
                raise Broken('no tick watches a read')
        if all(r.pc == 'idle' for r in s.readers) and s.begun != s.ended:
            raise Broken('a seat has users, and nothing reads it')


def explore(model):
    """Returns how many states there are; raises Broken."""
    first = model.start()
    seen, todo = {first}, [first]
    while todo:
        s = todo.pop()
        model.check(s)
        for after in model.steps(s):
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return len(seen)


def main():
    argparse.ArgumentParser(
        description='Reads without the array lock.').parse_args()
    failed = False
    print('%d states, all good' % explore(Seat()))
    for rule, text in RULES.items():
        try:
            explore(Seat([rule]))
        except Broken as e:
            print('without "%s": %s' % (text, e))
        else:
            print('without "%s": NOT FOUND' % text)
            failed = True
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
