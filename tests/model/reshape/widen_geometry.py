#!/usr/bin/python3
# gpuraid: the arithmetic of widening and of added parity, tried in full (W4,
# W5; layout 1).
#
#   tests/model/reshape/widen_geometry.py           k <= 5, m <= 3
#   tests/model/reshape/widen_geometry.py --all     k <= 8, m <= 4
#
# For each k and m:
#
#   frontier   which rows are new, dead and old, against a slow reference that
#              moves chunk after chunk; a move overwrites no cell that is still
#              needed; in rows (blocks), for chunks of several blocks, as well
#              as in stripes
#   zeroes     an old row with a column of zeroes is a word of k + 1 data cells
#              with the same parity: the matrix of code rs for k is the first k
#              columns of that for k + 1 (all k + m <= 64; crs: for m <= 2)
#   reads      any m members lost: every row, old or new, has k (k + 1) good
#              cells that give the others, before, between and after moves
#   layout 1   rotating and fixed slots, after any sequence of up to three
#              widenings and added parities: roles and slots one to one; without
#              the fixed slots it is layout 0; 1 + 1 fixed is md's
#              ALGORITHM_LEFT_SYMMETRIC_6; while an array is widened the new
#              member is in no old row but as the column of zeroes
#
# SPDX-License-Identifier: BSD-3-Clause

import itertools
import sys

# ---- the field and code rs (on-disk-format.md) ------------------------------

EXP, LOG = [0] * 512, [0] * 256
x = 1
for i in range(255):
    EXP[i] = EXP[i + 255] = x
    LOG[x] = i
    x = x << 1 ^ (0x11d if x & 128 else 0)


def mul(a, b):
    return EXP[LOG[a] + LOG[b]] if a and b else 0


def inv(a):
    return EXP[255 - LOG[a]]


def rs(k, m):
    c = [[1] * k]
    if m > 1:
        c.append([EXP[i] for i in range(k)])
    for t in range(1, m - 1):
        row = [inv(inv(EXP[i]) ^ EXP[t]) for i in range(k)]
        c.append([mul(v, inv(row[0])) for v in row])
    return c[:m]


def ones(a, w, poly):
    n = 0
    for _ in range(w):
        n += bin(a).count('1')
        a <<= 1
        if a >> w & 1:
            a ^= poly
    return n


def crs(k, m, w):
    """The matrix of code crs, as the format says it."""
    poly, size = (0x13, 16) if w == 4 else (0x11d, 256)
    if k + m > size:
        return None

    def times(a, b):
        r = 0
        while b:
            if b & 1:
                r ^= a
            a <<= 1
            if a >> w & 1:
                a ^= poly
            b >>= 1
        return r
    inverse = {a: next(b for b in range(1, size) if times(a, b) == 1)
               for a in range(1, size)} if size == 16 else \
        {a: inv(a) for a in range(1, size)}
    e = sorted(range(1, size), key=lambda a: (ones(a, w, poly), a))[:k]
    c = [[1] * k, e]
    rows = []
    for x in range(1, size):
        if x in [inverse[a] for a in e]:
            continue
        best = None
        for s in range(1, size):
            row = [times(s, inverse[inverse[a] ^ x]) for a in e]
            key = (sum(ones(v, w, poly) for v in row), s)
            if best is None or key < best[0]:
                best = key, row
        rows.append((best[0][0], x, best[1]))
    rows.sort()
    return (c + [r[2] for r in rows])[:m]


def rank_is_full(rows, n):
    rows = [r[:] for r in rows]
    for c in range(n):
        p = next((i for i in range(c, len(rows)) if rows[i][c]), None)
        if p is None:
            return False
        rows[c], rows[p] = rows[p], rows[c]
        f = inv(rows[c][c])
        rows[c] = [mul(v, f) for v in rows[c]]
        for i in range(len(rows)):
            if i != c and rows[i][c]:
                g = rows[i][c]
                rows[i] = [v ^ mul(g, u) for v, u in zip(rows[i], rows[c])]
    return True


# ---- layouts -----------------------------------------------------------------

class Layout:
    """Layout 1: slots in fixed (a sorted list) have the parity roles m0..m-1,
    in that order; the others rotate, in order, as layout 0 of k + m0."""

    def __init__(self, k, m, fixed=()):
        self.k, self.m, self.fixed = k, m, tuple(fixed)
        self.rot = [s for s in range(k + m) if s not in self.fixed]
        self.m0 = m - len(self.fixed)

    def slot(self, stripe, role):
        base = self.k + self.m0
        if role >= base:
            return self.fixed[role - base]
        return self.rot[(role + self.m0 - 1 - stripe) % base]

    def add_parity(self):
        return Layout(self.k, self.m + 1, self.fixed + (self.k + self.m,))

    def widen(self):
        return Layout(self.k + 1, self.m, self.fixed)

    def old_row_slot(self, stripe, role):
        """While this is widened: roles of a row of k + 1 data cells that
        was not moved.  Role k is the new member."""
        if role == self.k:
            return self.k + self.m
        return self.slot(stripe, role - (role > self.k))


# ---- checks --------------------------------------------------------------------

def dead_end(k, frontier, stripes):
    """Old stripes below this and from the frontier on are dead."""
    end = -(-stripes * k // (k + 1))
    return stripes if frontier >= end else \
        min(stripes, frontier + frontier // k)


def check_frontier(k):
    n = 0
    for stripes in list(range(1, 3 * k + 8)) + [5 * k * (k + 1) + 1]:
        nr = stripes * k
        end = -(-nr // (k + 1))
        moved = [False] * nr
        for f in range(stripes + 1):
            # what the formula says, and what is so
            for c in range(nr):
                assert moved[c] == (c // (k + 1) < f) == (c < f * (k + 1))
            d = dead_end(k, f, stripes)
            for s in range(f, stripes):
                dead = all(moved[s * k:s * k + k])
                assert dead == (s < d), (k, stripes, f, s)
            # no chunk that was not moved lies below the frontier
            assert not any(c // k < f and not moved[c] for c in range(nr))
            assert d - f == (stripes - f if f >= end else
                             min(f // k, stripes - f))
            if f == stripes:
                break
            new = [c for c in range(f * (k + 1), (f + 1) * (k + 1)) if c < nr]
            if new:
                # sources lie from the frontier on: formula of the design
                src = {c // k for c in new}
                assert min(src) == f * (k + 1) // k
                assert min(src) >= f and (d > f or min(src) == f)
                last = (f + 1) * (k + 1) - 1
                if last < nr:
                    assert max(src) == last // k
            # What the new stripe overwrites: dead (direct), or all of it is
            # moved by this very move (journaled), also two at a time.
            for w in (1, 2):
                if f + w > stripes:
                    continue
                goes = set(range(f * (k + 1), (f + w) * (k + 1)))
                for s in range(f, f + w):
                    live = {c for c in range(s * k, s * k + k)
                            if not moved[c]}
                    assert live <= goes
                    if s < d:
                        assert not live
            # A window in the dead zone never reads what it writes
            for w in range(1, d - f + 1):
                src = {c // k for c in range(f * (k + 1), (f + w) * (k + 1))
                       if c < nr}
                assert not src & set(range(f, f + w))
            for c in new:
                moved[c] = True
            n += 1
        assert all(moved)
    return n


def check_rows(k, blocks):
    """The frontier in rows: stripe by stripe, in a stripe block by block."""
    n = 0
    for stripes in (1, 2, k + 1, 2 * k + 3):
        nr = stripes * k
        where = {}              # (stripe, block, role) -> (chunk, block)
        for c in range(nr):
            for b in range(blocks):
                where[c // k, b, c % k] = c, b
        moved = set()
        for f in range(stripes * blocks + 1):
            fs, fb = divmod(f, blocks)
            for c in range(nr):
                for b in range(blocks):
                    isnew = c // (k + 1) * blocks + b < f
                    assert isnew == ((c, b) in moved)
            # An old row is dead when the frontier of its own block number
            # says so: each block number is an array of its own.
            end = -(-nr // (k + 1))
            for s in range(stripes):
                for b in range(blocks):
                    own = fs + (b < fb)         # stripes moved, of block b
                    if s >= own:
                        dead = s < dead_end(k, own, stripes)
                        real = all(where[s, b, r] in moved for r in range(k))
                        assert dead == real
            if f == stripes * blocks:
                break
            goes = {(c, fb) for c in range(fs * (k + 1), (fs + 1) * (k + 1))
                    if c < nr}
            for r in range(k):  # overwritten: moved before, or now
                assert where[fs, fb, r] in moved | goes
            moved |= goes
            n += 1
    return n


def check_zeroes(k, m):
    a, b = rs(k, m), rs(k + 1, m)
    assert [r[:k] for r in b] == a and rs(k, m + 1)[:m] == a
    return 1


def check_reads(k, m):
    """Losses: k + 1 of the cells of every row that are left decide it."""
    n, lay, wide = 0, Layout(k, m), Layout(k, m).widen()
    c = rs(k + 1, m)
    gen = [[int(i == r) for i in range(k + 1)] for r in range(k + 1)] + c
    for stripe in range((k + m) * (k + m + 1)):
        by_old = {lay.old_row_slot(stripe, r): r for r in range(k + 1 + m)}
        by_new = {wide.slot(stripe, r): r for r in range(k + 1 + m)}
        assert sorted(by_old) == sorted(by_new) == list(range(k + 1 + m))
        assert by_old[k + m] == k
        if stripe >= k + m + 1:
            continue
        for lost in itertools.combinations(range(k + 1 + m), m):
            for new, by in ((0, by_old), (1, by_new)):
                good = [gen[by[s]] for s in range(k + 1 + m) if s not in lost]
                if not new and k + m in lost:
                    good.append(gen[k])         # it is zeroes, lost or not
                assert rank_is_full(good, k + 1)
                n += 1
    return n


def check_layout1(k, m):
    n = 0
    for steps in itertools.chain.from_iterable(
            itertools.product('aw', repeat=r) for r in range(4)):
        lay = Layout(k, m)
        for what in steps:
            wider = lay.widen()
            for s in range(2 * (lay.k + lay.m + 1)):
                nr = lay.k + lay.m
                assert sorted(lay.slot(s, r) for r in range(nr)) == \
                    list(range(nr))
                old = [lay.old_row_slot(s, r) for r in range(nr + 1)]
                assert sorted(old) == list(range(nr + 1))
                # parity role j has the same slot in old rows as before
                for j in range(lay.m):
                    assert old[lay.k + 1 + j] == lay.slot(s, lay.k + j)
                # the base is layout 0, its slots counted without the fixed
                base = lay.k + lay.m0
                for r in range(base):
                    assert lay.rot.index(lay.slot(s, r)) == \
                        (r + lay.m0 - 1 - s) % base
                # the new member's roles, over base + 1 stripes, are all
                if what == 'w' and s == 0:
                    roles = {next(r for r in range(nr + 1)
                                  if wider.slot(t, r) == nr)
                             for t in range(wider.k + wider.m0)}
                    assert roles == set(range(wider.k + wider.m0))
                n += 1
            lay = wider if what == 'w' else lay.add_parity()
        if 'w' not in steps and not lay.fixed:
            assert all(lay.slot(s, r) == (r + m - 1 - s) % (k + m)
                       for s in range(20) for r in range(k + m))
        assert lay.m0 == m      # only added parity is fixed
    if m == 1:                  # md: raid5.c, ALGORITHM_LEFT_SYMMETRIC_6
        lay, disks = Layout(k, 1).add_parity(), k + 2
        for s in range(3 * disks):
            pd = disks - 2 - s % (disks - 1)
            assert lay.slot(s, k) == pd and lay.slot(s, k + 1) == disks - 1
            for d in range(k):
                assert lay.slot(s, d) == (pd + 1 + d) % (disks - 1)
    return n


def main():
    all_sizes = sys.argv[1:] == ['--all']
    if sys.argv[1:] and not all_sizes:
        print('usage: widen_geometry.py [--all]', file=sys.stderr)
        return 2
    ks, ms = (9, 5) if all_sizes else (6, 4)
    total = {}
    for k in range(1, ks):
        for name, n in (('frontier', check_frontier(k)),
                        ('rows', sum(check_rows(k, b) for b in (1, 2, 4)))):
            total[name] = total.get(name, 0) + n
        for m in range(1, ms):
            for name, f in (('zeroes', check_zeroes), ('reads', check_reads),
                            ('layout 1', check_layout1)):
                total[name] = total.get(name, 0) + f(k, m)
    for k in range(1, 64):      # all that an array can be
        for m in range(1, 64 - k):
            total['zeroes'] += check_zeroes(k, m)
    bad = []
    for w in (4, 8):
        for m in range(1, ms):
            for k in range(1, ks):
                a, b = crs(k, m, w), crs(k + 1, m, w)
                if a and b and [r[:k] for r in b] != a:
                    bad.append((k, m, w))
    print('crs: not a prefix for k + 1 (k, m, w):', bad)
    assert bad and all(m > 2 for k, m, w in bad)
    for name, n in total.items():
        print('%-9s %d cases' % (name, n))
    return 0


if __name__ == '__main__':
    sys.exit(main())
