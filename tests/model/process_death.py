#!/usr/bin/python3
# gpuraid: the death of a server's process as a small model, tried
# exhaustively.
#
# What a killed process had written and not flushed stays in the page cache of
# its host: others read it, and it is gone when the power fails.  Sessions put
# records in force as in membership.py, and are killed or crash at every step.
# Then readers and writers open some of the members, and the power fails at any
# time, with any part of what was not flushed.
#
#   tests/model/process_death.py            all of it, and each rule left out
#   tests/model/process_death.py --run K M SESSIONS [--without RULE,...]
#
# It checks what membership.py checks, and that what was read of a write that was
# in flight at the kill is read again by whatever opens the same members.
#
# A member is there twice, as it is read and as it is after a power failure.  A
# write in flight is in the journal of some members; k of them are enough to read
# it.
#
# What the model leaves out: members that are lost in a session, or replaced
# (membership.py), and what remote members do (remote.py).
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import sys
from collections import deque, namedtuple

sys.dont_write_bytecode = True

from membership_rules import Broken, bits, nbits    # noqa: E402
from membership_sessions import (IDLE, Model, PROPOSE, TELL,    # noqa: E402
                                 with_writes)

RULES = {
    'writers': 'a server that may write flushes each member before it reads it',
    'readers': 'so does one that only reads',
}

# read, stable: the members, as they are read and after a power failure.
# in_flight, kept: which of them have the write, likewise.  answered: the members
# of a reader that has read it, or 0.
State = namedtuple('State', 'read stable in_flight kept writes last answered')


def subsets(mask):
    s = mask
    while s:
        yield s
        s = (s - 1) & mask


def put(t, i, v):
    return t[:i] + (v,) + t[i + 1:]


class Deaths:
    def __init__(self, k, m, without=()):
        self.model = Model(k, m)
        self.without = set(without)

    def start(self):
        mem, writes, last = self.model.start()
        return State(mem, mem, 0, 0, writes, last, 0)

    # ---- caches

    def flush(self, state, found):
        stable = tuple(state.read[i] if found >> i & 1 else x
                       for i, x in enumerate(state.stable))
        return state._replace(
            stable=stable,
            kept=state.kept & ~found | state.in_flight & found)

    def power_fails(self, state):
        """Each of the others had been written back by itself."""
        every = self.model.all
        for lost in [0, *subsets(self.differ(state))]:
            s = self.flush(state, every & ~lost)
            yield 'power fails, %s forget' % list(bits(lost)), s._replace(
                read=s.stable, in_flight=s.kept)

    def differ(self, state):
        return (state.in_flight ^ state.kept) | sum(
            1 << i for i, x in enumerate(state.read) if x != state.stable[i])

    # ---- what must be true

    def content(self, state, found):
        """None if it does not open, or is the write in flight read?"""
        opens, w, known, base, current = \
            self.model.decide(state.read, found)[:5]
        return nbits(current & state.in_flight) >= self.model.k \
            if opens else None

    def check(self, state):
        self.model.check(state.read, state.writes, state.last)
        if state.answered and \
                self.content(state, state.answered) is False:
            raise Broken('what %s had answered is taken back' %
                         list(bits(state.answered)))

    # ---- a session

    def reader(self, state, found):
        if 'readers' not in self.without:
            state = self.flush(state, found)
        if self.content(state, found):
            state = state._replace(answered=found)
        return state

    def writer(self, state, found, crash):
        """Calls crash for all that it can leave."""
        if 'writers' not in self.without:
            state = self.flush(state, found)
        if state.answered & ~found:
            state = state._replace(answered=0)  # promises.md says so
        run = self.model.open((state.read, state.writes, state.last), found,
                              False)
        stack = [(state, run, ('writer %s' % list(bits(found)), None))]
        seen = set()
        while stack:
            state, run, path = stack.pop()
            if run is None:
                continue
            for label, s in self.kill(state, run):
                crash(s, (label, path))
            if run['phase'] == IDLE:
                continue
            for label, after, r, events in self.model.steps(
                    (state.read, state.writes, state.last), run, 0):
                s = self.written(state, after)
                if r is None:
                    for why, s2 in self.power_fails(s):
                        crash(s2, (why, path))
                    continue
                if r['phase'] == IDLE:          # it is in place
                    s = s._replace(in_flight=0, kept=0, answered=0)
                key = s, r['phase'], r['got'], r['next']
                if key not in seen:
                    seen.add(key)
                    stack.append((s, r, (label, path)))

    def written(self, state, after):
        """What this step has written is flushed too."""
        stable = state.stable
        for i, x in enumerate(after[0]):
            if x[:2] != state.read[i][:2]:
                stable = put(stable, i, x)
            else:
                stable = put(stable, i, with_writes(stable[i], x[2]))
        return state._replace(read=after[0], stable=stable, writes=after[1],
                              last=after[2])

    def kill(self, state, run):
        """It has written to some, and flushed none of these."""
        yield 'is killed', state
        if run['phase'] == IDLE:
            for got in subsets(run['cur'][2]):
                yield 'is killed, a write is on %s' % list(bits(got)), \
                    state._replace(in_flight=got, kept=0)
            return
        for got in subsets(self.model.takers(run) & ~run['got']):
            read = state.read
            for i in bits(got):
                prop, acc = read[i][:2]
                if run['phase'] in (PROPOSE, TELL):
                    prop = run['next']
                else:
                    acc = run['next']
                read = put(read, i, (prop, acc) + read[i][2:])
            yield 'is killed, its record is on %s, not flushed' % \
                list(bits(got)), state._replace(read=read)


def nexts(deaths, state, crash):
    """What can happen while no server runs: crash (state, steps, is it a
    session) for each that is left."""
    for why, s in deaths.power_fails(state):
        crash(s, (why, None), 0)
    for found in range(1, deaths.model.all + 1):
        crash(deaths.reader(state, found),
              ('reader %s' % list(bits(found)), None), 0)
        deaths.writer(state, found, lambda s, path: crash(s, path, 1))


def explore(deaths, sessions):
    """(states, None) or (states, (what broke, how))."""
    first = deaths.start()
    known = {first: None}
    todo = deque([(first, 0)])
    while todo:
        state, nr = todo.popleft()
        deaths.model.session = 1000 + nr

        def crash(s, path, more):
            if s in known or nr + more > sessions:
                return
            known[s] = path, state
            todo.append((s, nr + more))
            deaths.check(s)

        try:
            nexts(deaths, state, crash)
        except Broken as e:
            return len(known), (str(e), trace(known, todo[-1][0]))
    return len(known), None


def trace(known, state):
    out = []
    while known[state]:
        path, state = known[state]
        while path:
            out.append(path[0])
            path = path[1]
    return out[::-1]


# (k, m, sessions)
SIZES = [(1, 1, 3), (1, 2, 2), (2, 1, 1), (2, 2, 1)]
WEAKER = [('writers', (1, 1, 2)), ('readers', (1, 1, 2))]


def run(size, without=()):
    k, m, sessions = size
    nr, broken = explore(Deaths(k, m, without), sessions)
    print('%d+%d, %d sessions%s: %d states: %s' % (
        k, m, sessions, ', without ' + ','.join(without) if without else '',
        nr, broken[0] if broken else 'holds'), flush=True)
    return broken


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--run', nargs=3, type=int, metavar=('K', 'M', 'SESSIONS'))
    p.add_argument('--without', default='', help=', '.join(RULES))
    args = p.parse_args()
    without = [x for x in args.without.split(',') if x]
    if set(without) - set(RULES):
        p.error('no such rule: there are ' + ', '.join(RULES))
    if args.run:
        broken = run(args.run, without)
        print('\n'.join(broken[1]) if broken else '')
        return broken is not None
    bad = sum(run(size) is not None for size in SIZES)
    for rule, size in WEAKER:
        bad += run(size, [rule]) is None
    if bad:
        print('%d of these are not as they should be' % bad)
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
