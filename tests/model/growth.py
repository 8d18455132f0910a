#!/usr/bin/python3
# gpuraid: the growth of an array as a small model, tried exhaustively.
#
# Sessions open some of the members, put records in force, let the array grow,
# write to what is new, lose members, bring them back, and crash, at every step.
# After every crash every set of members is tried: does it open, and is what it
# would serve complete?
#
#   tests/model/growth.py                     all sizes, and every weakening
#   tests/model/growth.py --run K M SESSIONS EVENTS [--without RULE]
#
# For every state and every set of members that opens it checks:
#
#   - what was acknowledged is in the extent, and on every current member
#   - what the extent has is prepared on every current member
#   - all members together always open
#
# How a record is agreed on is in membership.py; here only what is needed of it
# where k > m.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import sys

RULES = {
    'prepared': 'what is new is prepared on every active member',
    'flushed': 'that is durable before it is proposed',
    'slots': 'every slot is active',
    'in-force': 'nothing is acknowledged before the record is in force',
    'winner': 'the extent is that of the winner, not of any copy',
}


class Broken(Exception):
    pass


def subsets(mask):
    s = mask
    while True:
        yield s
        if s == 0:
            return
        s = (s - 1) & mask


def bits(mask):
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


# A record is (epoch, active, large, whole, parent, epochs its maker has seen); a
# parent has neither of the last two.  A member is (accepted, proposed,
# prepared, value): two records, whether what is new is prepared there, durably,
# and what a client's write left in it: 0 nothing, 1 the write.  A state is
# (members, acknowledged).

class Model:
    def __init__(self, k, m, without=()):
        self.k, self.m, self.n = k, m, k + m
        self.all = (1 << self.n) - 1
        self.keep = {r: r not in without for r in RULES}

    def start(self):
        r = (1, self.all, False, 1)
        r += (r, (1,))
        return (((r, r, False, 0),) * self.n, False)

    # ---- opening --------------------------------------------------------

    def quorum(self, a):
        return a - self.k + 1 if a >= 2 * self.k else self.k

    def open(self, state, found):
        """(winner, current members), or None."""
        members = state[0]
        winner = max([members[i][0][:4] for i in bits(found)] +
                     [members[i][1][4] for i in bits(found)])
        current = 0
        for i in bits(found & winner[1]):
            accepted, proposed = members[i][:2]
            if winner in (accepted[:4], proposed[:4]) or (
                    proposed[0] > winner[0] and proposed[1] >> i & 1 and
                    winner[0] in proposed[5]):
                current |= 1 << i
        need = self.quorum(bin(winner[1]).count('1'))
        if bin(current).count('1') < need:
            return None
        if not self.keep['winner']:
            winner = (winner[0], winner[1], members[bits(found)[0]][0][2],
                      winner[3])
        return winner, current

    def check(self, state):
        members, acked = state
        for found in range(1, self.all + 1):
            r = self.open(state, found)
            if r is None:
                if found == self.all:
                    raise Broken('all members together do not open')
                continue
            winner, current = r
            if acked and not winner[2]:
                raise Broken('what was acknowledged is beyond the end')
            for i in bits(current):
                if winner[2] and not members[i][2]:
                    raise Broken('a current member is not prepared')
                if acked and members[i][3] != 1:
                    raise Broken('a current member lacks what was '
                                 'acknowledged')

    # ---- a session ------------------------------------------------------

    @staticmethod
    def set(members, i, **what):
        m = dict(zip(('accepted', 'proposed', 'prepared', 'value'),
                     members[i]))
        m.update(what)
        return members[:i] + (tuple(m[x] for x in (
            'accepted', 'proposed', 'prepared', 'value')),) + members[i + 1:]

    def put(self, state, record, cur, spare, crash):
        """Put a record in force; crash(state) is called for each state that
        a crash can leave.  Yields (state, record, members that may still
        fail); a member may fail in each phase."""
        members, acked = state
        takers = record[1]
        for got in subsets(takers):
            ms = members
            for i in bits(got):
                ms = self.set(ms, i, proposed=record)
            crash((ms, acked))
            # One that has not got it has failed: without it, and as large
            # as before.
            left = takers & ~got
            if left and spare >= bin(left).count('1') and \
                    bin(takers & ~left).count('1') >= self.k:
                yield from self.put(
                    (ms, acked), self.after(cur, record, takers & ~left,
                                            cur[2]), cur,
                    spare - bin(left).count('1'), crash)
        for i in bits(takers):
            members = self.set(members, i, proposed=record)
        for got in subsets(takers):
            ms = members
            for i in bits(got):
                ms = self.set(ms, i, accepted=record)
            crash((ms, acked))
            left = takers & ~got
            if got and left and spare >= bin(left).count('1') and \
                    bin(takers & ~left).count('1') >= self.k:
                yield from self.put(
                    (ms, acked), self.after(record, record, takers & ~left,
                                            record[2]), record,
                    spare - bin(left).count('1'), crash)
        for i in bits(takers):
            members = self.set(members, i, accepted=record)
        yield (members, acked), record, spare

    def after(self, cur, last, active, large):
        """A record that follows cur, by the maker of the last one."""
        whole = cur[0] if cur[1] == self.all else cur[3]
        epoch = last[0] + 1
        return (epoch, active, large, whole, cur[:4], last[5] + (epoch,))

    def write(self, state, record, crash):
        """A client writes to what is new; acknowledged when all have it."""
        members = state[0]
        for got in subsets(record[1]):
            ms = members
            for i in bits(got):
                ms = self.set(ms, i, value=1)
            crash((ms, state[1]))
        for i in bits(record[1]):
            members = self.set(members, i, value=1)
        crash((members, True))
        return members, True

    def prepare(self, state, active, crash):
        """Each member by itself.  Without a flush a crash may lose any."""
        members, acked = state
        todo = active
        if not self.keep['prepared']:
            todo &= todo - 1            # not on the first
        for got in subsets(todo):
            ms = members
            for i in bits(got):
                ms = self.set(ms, i, prepared=True)
            crash((ms, acked))
            if got == todo or not self.keep['flushed']:
                yield ms, acked

    def grow(self, state, record, spare, crash):
        large = self.after(record, record, record[1], True)
        for s in self.prepare(state, record[1], crash):
            if not self.keep['in-force'] and s[0][bits(record[1])[0]][2]:
                # The first member has accepted it, and a client writes.
                members = s[0]
                for i in bits(large[1]):
                    members = self.set(members, i, proposed=large)
                members = self.set(members, bits(large[1])[0], accepted=large)
                self.write((members, s[1]), large, crash)
            yield from self.put(s, large, record, spare, crash)

    def bring_back(self, state, record, i, spare, crash):
        """A member that is not active is made so: by the dirty bits, or in
        full."""
        members, acked = state
        covered = members[i][0][0] >= record[3]
        source = bits(record[1])[0]
        what = {'value': members[source][3]}
        if not covered and record[2]:
            what['prepared'] = True
        members = self.set(members, i, **what)
        yield from self.put(
            (members, acked),
            self.after(record, record, record[1] | 1 << i, record[2]),
            record, spare, crash)

    def events(self, state, record, found, spare, nr, crash):
        if nr == 0:
            return
        nexts = []
        if not record[2] and (record[1] == self.all or
                              not self.keep['slots']):
            nexts.append(self.grow(state, record, spare, crash))
        if record[2] and not state[1]:
            s = self.write(state, record, crash)
            nexts.append([(s, record, spare)])
        for i in bits(found & ~record[1]):
            nexts.append(self.bring_back(state, record, i, spare, crash))
        for i in bits(record[1]):
            left = record[1] & ~(1 << i)
            if spare and bin(left).count('1') >= self.k:
                nexts.append(self.put(
                    state, self.after(record, record, left, record[2]),
                    record, spare - 1, crash))
        for alternatives in nexts:
            for s, r, left in alternatives:
                self.events(s, r, found, left, nr - 1, crash)

    def session(self, state, found, nr, crash):
        r = self.open(state, found)
        if r is None:
            return
        winner, current = r
        # Other sessions draw other numbers: no epoch is used twice.
        epoch = max(max(m[0][0], m[1][0]) for m in state[0])
        seen = set()
        for i in bits(found):
            for r in state[0][i][:2]:
                seen |= {r[0], r[4][0], *r[5]}
        record = self.after(winner, (epoch, 0, 0, 0, 0, tuple(seen)), current,
                            winner[2])
        for s, rec, left in self.put(state, record, winner, self.m, crash):
            self.events(s, rec, found, left, nr, crash)


def normal(model, state):
    """Epochs only matter by their order, and a member by what it has."""
    members, acked = state
    records = [r for m in members for r in m[:2]]
    records += [r[4] for r in records]
    epochs = sorted({r[0] for r in records} | {r[3] for r in records})
    no = {e: i + 1 for i, e in enumerate(epochs)}

    def short(r):
        return no[r[0]], r[1], r[2], no[r[3]]

    def rec(r):
        seen = tuple(sorted(no[e] for e in r[5] if e in no))
        return short(r) + (short(r[4]), seen)
    return tuple((rec(m[0]), rec(m[1]), m[2], m[3]) for m in members), acked


def explore(model, sessions, events):
    """(number of states, None), or (number, what broke)."""
    first = model.start()
    known = {first}
    todo = [first]
    for _ in range(sessions):
        found_states = []

        def crash(state):
            s = normal(model, state)
            if s in known:
                return
            known.add(s)
            model.check(s)
            found_states.append(s)

        try:
            for state in todo:
                for found in range(1, model.all + 1):
                    model.session(state, found, events, crash)
        except Broken as e:
            return len(known), str(e)
        todo = found_states
    return len(known), None


SIZES = [(2, 1, 2, 2), (2, 1, 1, 4), (3, 1, 1, 3), (3, 2, 1, 1)]
WEAKER = [
    ('prepared', (2, 1, 1, 1)),
    ('flushed', (2, 1, 1, 1)),
    ('slots', (2, 1, 1, 3)),
    ('in-force', (2, 1, 1, 1)),
    ('winner', (2, 1, 1, 2)),
]


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--run', nargs=4, type=int)
    p.add_argument('--without', default='')
    args = p.parse_args()
    if args.run:
        k, m, sessions, events = args.run
        without = [r for r in args.without.split(',') if r]
        if set(without) - set(RULES):
            sys.exit('no such rule; there are: ' + ', '.join(RULES))
        nr, why = explore(Model(k, m, without), sessions, events)
        print('%d states: %s' % (nr, why or 'it holds'))
        return 1 if why else 0
    bad = False
    for k, m, sessions, events in SIZES:
        nr, why = explore(Model(k, m), sessions, events)
        print('%d+%d, %d sessions of %d events: %d states: %s' % (
            k, m, sessions, events, nr, why or 'it holds'), flush=True)
        bad |= why is not None
    for rule, (k, m, sessions, events) in WEAKER:
        nr, why = explore(Model(k, m, [rule]), sessions, events)
        print('without "%s": %s' % (RULES[rule], why or 'NOT detected'),
              flush=True)
        bad |= why is None
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
