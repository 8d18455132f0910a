#!/usr/bin/python3
# gpuraid: the record of membership that widens an array, tried exhaustively.
#
#   tests/model/reshape/widen_quorum.py [--all] [--traces]
#   tests/model/reshape/widen_quorum.py --run K M SESSIONS FAILS
#       [--without RULE,...]
#   tests/model/reshape/widen_quorum.py --dump     for test-membership-model
#
# Section 7's rules (../membership.py tries them for one geometry) with a k in
# each record (W1 to W3): a session opens some of the members, puts a record in
# force, writes, puts NEW and k + 1 in force in one record, takes it back while
# no row has moved, loses members, and crashes between any two steps.  After
# every crash every set of members is tried:
#
#   - every member that counts as current holds all that was acknowledged
#   - the winner is the last record that was in force, or has seen it
#   - enough slots are there for the winner's own k
#   - all members together always open
#   - in the first session, while no member failed: every set that is a quorum
#     of the last record in force and of the one under way, each by its own k,
#     opens; and of the base, until one more record of the same members is in
#     force
#
# Not in it: copies that tear, old images, replacements, force.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import sys

RULES = {
    'base-new-k': "the base's quorum is computed with the new k",
    'winner-old-k': "the winner's quorum is computed with the old k",
    'keep-old-k': "a change keeps as many members as the old k says",
    'not-told': "NEW did not have the record in force when it was added",
    'no-base': "nothing is asked of the members of the base",
    'degraded': "the record may be made while a slot is not active",
    'no-again': "no other record of the same members follows",
    'two-steps': "k + 1 first, and NEW in another record",
}

# A name of a record: (epoch, session, members, k).  A record: (name, base,
# parent, seen).  A member: (proposed, accepted, holds all writes).


class Broken(Exception):
    pass


def nbits(x):
    return bin(x).count('1')


class Model:
    def __init__(self, k, m, without=()):
        self.k, self.m, self.n = k, m, k + m
        self.new = 1 << self.n
        self.all = (1 << self.n + 1) - 1
        self.without = without
        self.runs = self.checks = 0
        self.cancel_before = 8          # or it would go on for ever

    def quorum(self, a, k):
        return max(k, a - k + 1)

    def decide(self, mem, found):
        """(opens, winner, base, current, seen, why)"""
        recs, named = [], set()
        for i in range(self.n + 1):
            if found >> i & 1:
                for r in mem[i][:2]:
                    if r:
                        recs.append(r)
                        named |= {r[1], r[2]}
                if mem[i][1]:
                    named.add(mem[i][1][0])
        if not named:
            return None
        w = max(named)
        known = any(r[1] == w for r in recs) or (
            w[2] & ~found == 0 and all(
                mem[i][1] and mem[i][1][0] == w
                for i in range(self.n + 1) if w[2] >> i & 1))
        source = next((r for r in recs if r[0] == w), None) or \
            next((r for r in recs if r[2] == w), None) or \
            next(r for r in recs if r[1] == w)
        base = w if known else source[1]
        seen = set(source[3]) | {w[:2]}
        for c in named:
            if c != w and c[:2] not in seen:
                return False, w, base, 0, seen, 'branch'
        current = 0
        for i in range(self.n + 1):
            if (found & w[2]) >> i & 1:
                p, acc = mem[i][:2]
                if acc and (acc[0] == w or acc[0][0] >= base[0] and any(
                        r and (r[0] == w or r[0][2] >> i & 1 and
                               w[:2] in r[3]) for r in (p, acc))):
                    current |= 1 << i
        wk, bk = w[3], base[3]
        if 'winner-old-k' in self.without:
            wk = self.k
        if 'base-new-k' in self.without:
            bk = wk
        if nbits(current) < self.quorum(nbits(w[2]), wk):
            return False, w, base, current, seen, 'quorum'
        if not known and 'no-base' not in self.without:
            b = nbits(base[2])
            need = self.quorum(b, bk)
            if nbits(base[2] & found) < need or \
               nbits(base[2] & current) < b - need + 1:
                return False, w, base, current, seen, 'base'
        return True, w, base, current, seen, ''

    def check(self, state):
        mem, last, under, clean = state
        # NEW may be missing from the machine before it was ever a member.
        for found in range(1, self.all + 1):
            d = self.decide(mem, found)
            if d is None:
                continue
            self.checks += 1
            opens, w, base, current, seen, why = d
            if why == 'branch':
                raise Broken('%s look like branches' % found)
            if opens:
                for i in range(self.n + 1):
                    if current >> i & 1 and not mem[i][2]:
                        raise Broken('%s opens, but member %d lacks a write'
                                     % (bin(found), i))
                if last[:2] not in seen:
                    raise Broken('%s opens behind %s' % (bin(found), last))
                if nbits(current) < w[3]:
                    raise Broken('%s opens without enough slots' % bin(found))
            elif found == self.all:
                raise Broken('all are there, and refused: %s' % why)
            elif clean and all(
                    nbits(found & r[2]) >= self.quorum(nbits(r[2]), r[3])
                    for r in (last,) + under):
                raise Broken('%s is a quorum of %s and %s, and is refused: %s'
                             % (bin(found), last, list(under), why))

    # ---- steps: a run is a tuple
    # (mem, last, under, clean, session, cur, base, alive, fails, seen, epoch,
    #  phase, next, got)

    def start(self):
        full = (1 << self.n) - 1
        name = (1, 0, full, self.k)
        rec = (name, name, name, ())
        mem = tuple((rec, rec, True) for _ in range(self.n)) + \
            (((None, None, False),) if 'not-told' in self.without else
             ((rec, rec, True),))
        return mem, name, (), True

    def propose(self, run, active, k):
        (mem, last, under, clean, ses, cur, base, alive, fails, seen, epoch,
         phase, nxt, got) = run
        epoch += 1
        name = (epoch, ses, active, k)
        rec = (name, base, cur, tuple(sorted(seen)))
        if phase == 'open':
            under = ()
        return (mem, last, under + (name,), clean, ses, cur, base, alive,
                fails, seen | {name[:2]}, epoch, 'propose', rec, 0)

    def open(self, state, found, ses, fails, first):
        mem, last, under, clean = state
        d = self.decide(mem, found)
        if not d or not d[0]:
            return None
        _, w, base, current, _, _ = d
        seen, epoch = set(), 0
        for i in range(self.n + 1):
            if found >> i & 1:
                for r in mem[i][:2]:
                    if r:
                        seen |= {r[0][:2], r[1][:2], r[2][:2]} | set(r[3])
                        epoch = max(epoch, r[0][0])
        run = (mem, last, under, clean and first, ses, w, base, found, fails,
               frozenset(seen), epoch, 'open', None, 0)
        # both geometries have their own k; a winner with k + 1 stays so
        return self.propose(run, current, w[3])

    def legal(self, run, active):
        cur, base = run[5], run[6]
        ck, bk = cur[3], base[3]
        if 'keep-old-k' in self.without:
            ck = bk = self.k
        return nbits(active & cur[2]) >= ck and nbits(active & base[2]) >= bk

    def steps(self, run):
        (mem, last, under, clean, ses, cur, base, alive, fails, seen, epoch,
         phase, nxt, got) = run
        out = []
        if phase in ('propose', 'accept'):
            acc = phase == 'accept'
            for i in range(self.n + 1):
                if (nxt[0][2] & ~got) >> i & 1:
                    new = list(mem)
                    p, a, h = mem[i]
                    new[i] = (p, nxt, h) if acc else (nxt, a, h)
                    g = got | 1 << i
                    r = (tuple(new), last, under, clean, ses, cur, base,
                         alive, fails, seen, epoch, phase, nxt, g)
                    if g == nxt[0][2]:
                        r = r[:11] + ('accept', nxt, 0) if not acc else \
                            self.force(r)
                    out.append(('%s %d' % (phase, i), r))
        elif phase == 'tell':           # a spare has it too; then a write
            new = list(mem)
            if alive & self.new and not cur[2] & self.new and \
               'not-told' not in self.without:
                new[self.n] = (nxt, nxt, True)
            for i in range(self.n + 1):
                new[i] = new[i][:2] + (bool(cur[2] >> i & 1) or
                                       i == self.n and not cur[2] & self.new,)
            if 'no-again' in self.without:
                under = ()      # then the promise is made now
            out.append(('write', (tuple(new), last, under) + run[3:11] +
                        ('idle', None, 0)))
        elif phase == 'idle':
            full = (1 << self.n) - 1
            left_to_cancel = epoch < self.cancel_before
            if under and 'no-again' not in self.without:
                out.append(('again', self.propose(run, cur[2], cur[3])))
            elif cur[3] == self.k and alive & self.new and \
               (cur[2] == full or 'degraded' in self.without and
                    nbits(cur[2]) >= self.k):
                if 'two-steps' in self.without:
                    out.append(('k+1', self.propose(run, cur[2], self.k + 1)))
                else:
                    out.append(('widen', self.propose(
                        run, cur[2] | self.new, self.k + 1)))
            elif cur[3] == self.k + 1 and cur[2] == self.all and \
                    alive & self.new and left_to_cancel:
                # nothing has moved yet: a record with k, without NEW
                out.append(('cancel', self.propose(
                    run, cur[2] & ~self.new, self.k)))
            elif cur[3] == self.k + 1 and not cur[2] & self.new and \
                    alive & self.new and 'two-steps' in self.without:
                out.append(('add', self.propose(run, cur[2] | self.new,
                                                self.k + 1)))
        if fails:
            for y in range(self.n + 1):
                if alive >> y & 1:
                    r = self.fail(run, y)
                    if r:
                        out.append(('fail %d' % y, r))
        return out

    def force(self, run):
        nxt = run[12]
        name = nxt[0]
        under = (nxt[1],) if nxt[1][2] != name[2] else ()
        return run[:1] + (name, under) + run[3:5] + (name, name) + \
            run[7:11] + ('tell', nxt, 0)

    def fail(self, run, y):
        gone = 1 << y
        (mem, last, under, clean, ses, cur, base, alive, fails, seen, epoch,
         phase, nxt, got) = run
        alive &= ~gone
        run = (mem, last, under, False, ses, cur, base, alive, fails - 1,
               seen, epoch, phase, nxt, got)
        if phase in ('idle', 'tell'):
            if not cur[2] & gone:
                return run
            active = cur[2] & ~gone
            return self.propose(run, active, cur[3]) \
                if self.legal(run, active) else None
        if not nxt[0][2] & gone:
            return run
        if phase == 'propose':          # from the same parent, without it
            active = cur[2] & ~gone
            if gone & self.new or not nxt[0][2] & ~cur[2]:
                active = nxt[0][2] & ~gone & cur[2]
            return self.propose(run, active, cur[3]) \
                if self.legal(run, active) else None
        # finished on the others; the base stays
        g = got
        new = list(mem)
        for i in range(self.n + 1):
            if (nxt[0][2] & ~gone & ~got) >> i & 1:
                new[i] = (mem[i][0], nxt, mem[i][2])
        run = (tuple(new), last, under, False, ses, nxt[0], base, alive,
               fails - 1, seen, epoch, phase, nxt, g)
        active = nxt[0][2] & ~gone
        return self.propose(run, active, nxt[0][3]) \
            if self.legal(run, active) else None


def explore(model, sessions, fails, states=None):
    """All states after a crash; returns how many.  Each is checked, or put
    into states, if that is a dict."""
    start = model.start()
    seen = {(start, sessions, fails)}
    todo = [(start, sessions, fails, ('start', None))]
    while todo:
        state, left, fails, path = todo.pop()
        if states is not None:
            states[state[0]] = True
        try:
            if states is None:
                model.check(state)
        except Broken as e:
            raise Broken(str(e), unroll(path))
        if not left:
            continue
        for found in range(1, model.all + 1):
            run = model.open(state, found, sessions - left + 1, fails,
                             left == sessions)
            if run is None:
                continue
            stack, been = [(run, (bin(found) + ' opens', path))], {run}
            while stack:
                run, path2 = stack.pop()
                model.runs += 1
                s = run[:4]
                key = (s, left - 1, run[8])
                if key not in seen:
                    seen.add(key)
                    todo.append((s, left - 1, run[8], ('CRASH', path2)))
                for label, r in model.steps(run):
                    if r not in been:
                        been.add(r)
                        stack.append((r, (label, path2)))
    return len(seen)


def unroll(path):
    out = []
    while path:
        out.append(path[0])
        path = path[1]
    return '; '.join(reversed(out))


# ---- the command ------------------------------------------------------------

# (k, m, sessions, failures)
SLICE = [(2, 1, 1, 1), (1, 2, 1, 2), (3, 1, 1, 1), (1, 1, 2, 2)]
# With --all: two minutes more.
LONGER = [(2, 2, 1, 2), (2, 1, 2, 1), (1, 2, 2, 1), (1, 1, 3, 1)]

# Where each mistake is tried, and whether it must be detected.  "degraded" must
# not: moving waits for all slots, but the record itself would need none.
WEAKER = [
    ('base-new-k', (2, 1, 1, 1), True),
    ('winner-old-k', (2, 1, 1, 1), True),
    ('keep-old-k', (2, 1, 1, 1), True),
    ('not-told', (2, 1, 1, 1), True),
    ('no-base', (1, 1, 2, 2), True),
    ('degraded', (1, 2, 1, 2), False),
    ('no-again', (2, 1, 1, 1), True),
    ('two-steps', (1, 2, 1, 2), True),
]


# For --dump: of these all states, or one of this many.
DUMPED = [
    ((2, 1, 1, 1), 1), ((3, 1, 1, 1), 9), ((1, 2, 1, 2), 19),
    ((1, 1, 2, 2), 19),
]

# The shape of a record, as test-membership-model knows it: it widens the array,
# or has NEW as a spare.  reshape/membership_parity.py has others.
DATA, LISTS = 32, 8


def dump_states(size, step):
    """As membership.py does: only the slot of NEW is another one."""
    model = Model(*size[:2])
    new, states = model.n, {}
    explore(model, size[2], size[3], states)

    def name(c):
        return c[:3] + (DATA if c[3] > model.k else LISTS,)

    def line(r):
        if r is None:
            return '-'
        return 'r ' + ' '.join(map(str, name(r[0]) + name(r[1]) + name(r[2]) +
                                   (0, len(r[3])) + sum(r[3], ())))

    for mem in list(states)[::step]:
        print('state %d %d %d 0' % (size[:2] + (new + 1,)))
        print(*range(new + 1))
        for m in mem:
            print(line(m[0]), line(m[1]))
        for found in range(1, model.all + 1):
            opens, w, base, current, _, why = model.decide(mem, found)
            print('found %d %d %d %d %d %d 0 %s 0 0 0 0' % (
                found, opens, w[0], w[1], base == w, current, why or '-'))


def attempt(shape, without=()):
    """What broke, or None."""
    k, m, sessions, fails = shape
    model = Model(k, m, without)
    print('  %d+%d, %d sessions, %d failures: ' % shape, end='', flush=True)
    try:
        n = explore(model, sessions, fails)
    except Broken as e:
        print(e.args[0])
        return e.args
    print('%d states, %d steps, %d openings decided' % (
        n, model.runs, model.checks), flush=True)
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--all', action='store_true')
    p.add_argument('--traces', action='store_true')
    p.add_argument('--dump', action='store_true')
    p.add_argument('--run', nargs=4, type=int,
                   metavar=('K', 'M', 'SESSIONS', 'FAILS'))
    p.add_argument('--without', default='')
    o = p.parse_args()
    without = tuple(filter(None, o.without.split(',')))
    if o.dump:
        for size, step in DUMPED:
            dump_states(size, step)
        return 0
    if o.run:
        broken = attempt(tuple(o.run), without)
        if broken:
            print('    ' + broken[1])
        return 1 if broken else 0
    bad = 0
    for shape in SLICE + LONGER * o.all:
        bad += attempt(shape) is not None
    for rule, shape, expected in WEAKER:
        print('%s: %s' % (rule, RULES[rule]))
        broken = attempt(shape, (rule,))
        if broken and o.traces:
            print('    ' + broken[1])
        if bool(broken) != expected:
            print('%s: %s' % (rule, 'DETECTED, and it should not be' if broken
                              else 'NOT DETECTED'))
            bad += 1
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
