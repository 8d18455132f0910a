# gpuraid: the rules of membership (docs/rules.md), as a model: what opens,
# what may be proposed next, and what must be true after every crash.
# membership_sessions.py has the steps, membership.py explores them.
#
# A record is (epoch, session, active, base, parent, seen, goes): active is
# a bit mask of members, base and parent are (epoch, session, active), seen
# a sorted tuple of (epoch, session), goes those that are replaced: of two
# active members of a slot the one that is not read, and dropped next.  A
# member is (proposed, accepted,
# writes): the newest record in copies A1/B1 and A2/B2, and a bit mask of
# the acknowledged writes that it holds.  --copies tells A from B and
# tears them.  --rot has one of these rot after a crash.  --images puts old
# images of members back.
#
# What the model leaves out: the device table, cursors and the bitmap
# (test-membership-changes.c and -walk.c try those), and the limit of
# 24 on seen.
#
# SPDX-License-Identifier: BSD-3-Clause

RULES = {
    "sessions": "the next epoch is the winner's plus one, ties by session",
    "goback": "a record that a member present never accepted does not count",
    "swap": "one record both adds and removes",
    "quorum-k": "a quorum of k",
    "quorum-half": "a quorum of half the members",
    "together": "A1 and B1 are in flight together",
    "no-base": "nothing is asked of the members of the base",
    "keep-base": "a change may leave fewer than k members of the base",
    "base-moves": "a record that a member failed to accept becomes the base",
    "any-current": "accepting the base is enough to be current",
    "any-epoch": "being proposed any record as new as the winner is enough"
                 " to be current (with --images)",
    "only-accepted": "only those that accepted the winner are current",
    "early": "writes go on without a failed member before the record is in"
             " force",
    "late-target": "a target is written before it took a record",
    "told-early": "targets are given a record along with its members",
    "a-first": "copy A is always written first (with --copies)",
    "one-copy": "a record counts as accepted that is in one copy (with"
                " --rot)",
    "no-branch": "another branch is not looked for (with --force)",
    "past-seen": "what force goes past counts as seen (with --force)",
    "past-listed": "what a member held that the winner lists can be a branch"
                   " (with --force)",
    "by-parent": "of two members of a slot the one goes that the parent"
                 " lists",
    "early-resync": "parity is made anew while a slot has two members: it"
                    " fits the one that is read",
}

# By mask: its members, and how many they are.
BITS = [tuple(i for i in range(7) if mask >> i & 1) for mask in range(128)]
NBITS = [len(b) for b in BITS]


def bits(mask):
    return BITS[mask]


def nbits(mask):
    return NBITS[mask]


def records_of(member):
    """All that its copies hold."""
    return [r for r in member[:2] + member[3][:2] if r]


class Broken(Exception):
    pass


class Rules:
    hides = 0           # the second half of M4 is not asked

    def __init__(self, k, m, extra=0, without=(), force=False,
                 copies=False, images=False, rot=False):
        self.k, self.m, self.n = k, m, k + m
        self.nr = k + m + extra         # members; the extra ones replace
        self.slot = [i if i < self.n else i - self.n for i in range(self.nr)]
        self.without = frozenset(without)
        self.force = force
        self.copies = copies or rot
        self.images = images
        self.rot = rot
        self.all = (1 << self.nr) - 1
        self.nr_slots = [len({self.slot[i] for i in bits(mask)})
                         for mask in range(self.all + 1)]

    def shape(self, name):
        """Of a record: reshape/membership_parity.py has others."""
        return 0

    def nr_of(self, name):
        """The slots of a record."""
        return self.n

    # ---- the rules ----------------------------------------------------

    def quorum(self, a):
        if "quorum-k" in self.without:
            return self.k
        if "quorum-half" in self.without:
            return max(self.k, (a + 1) // 2)
        return max(self.k, a - self.k + 1)

    def slots(self, mask):
        return self.nr_slots[mask]

    def pick_winner(self, mem, found, named):
        if "goback" in self.without:
            for c in sorted(named, reverse=True):
                if all(mem[i][1] and mem[i][1][:3] >= c
                       for i in bits(c[2] & found)):
                    return c
        return max(named)

    def was_proposed(self, member, i, w):
        """May it count as current without having accepted the winner?"""
        if "only-accepted" in self.without:
            return False
        if "any-current" in self.without:
            return True
        for r in records_of(member):
            if "any-epoch" in self.without:
                if r[0] >= w[0]:
                    return True
            elif r[:3] == w or r[2] >> i & 1 and w[:2] in r[5]:
                return True
        return False

    def settle(self, active, goes):
        """Those of goes that have another one in their slot, which stays."""
        if not goes:
            return 0
        out = 0
        for x in bits(active & goes):
            if any(self.slot[y] == self.slot[x]
                   for y in bits(active & ~goes)):
                out |= 1 << x
        return out

    def which_go(self, source, w, current):
        """Of two current members of a slot the one that goes, as a record
        says that is the winner or names it."""
        if self.nr == self.n:
            return 0
        goes, parent = source[6], source[4]
        if source[:3] != w:
            goes, parent = goes | w[2] & ~source[2], source[3]
        goes = 0 if "by-parent" in self.without else self.settle(w[2], goes)
        out = 0
        for y in bits(current):
            for x in bits(current & ((1 << y) - 1)):
                if self.slot[x] != self.slot[y]:
                    continue
                if (goes >> x ^ goes >> y) & 1:
                    out |= goes & (1 << x | 1 << y)
                else:
                    out |= 1 << (y if parent[2] >> y & 1 else x)
        return out

    def what_is_known(self, mem, found, records, w):
        """Of a record: a copy that says most of it, whether it is known to
        be in force, and the last one that is."""
        known = any(r[3] == w for r in records)
        if not known and w[2] & ~found == 0:
            known = all(self.has_accepted(mem[i], w) for i in bits(w[2]))
        source = next((r for r in records if r[:3] == w), None) or \
            next((r for r in records if r[4] == w), None) or \
            next(r for r in records if r[3] == w)
        return source, known, w if known else source[3]

    def has_accepted(self, member, w):
        """In both copies: one that has it alone may rot."""
        acc, more = member[1], member[3]
        return acc and acc[:3] == w and \
            ("one-copy" in self.without or not more or more[1] is None or
             more[1][:3] == w)

    def branch_of(self, member, w, seen, listed):
        """Does it hold a record that w has not seen?  If w lists it, it was
        there when w was made, so nothing older on it is a branch."""
        return any(c[:2] != w[:2] and c[:2] not in seen and
                   not (listed and c[0] < w[0] and
                        "past-listed" not in self.without)
                   for c in self.names(member))

    def names(self, member):
        """The records that it accepted, or that a copy names."""
        out = [member[1]] if member[1] else []
        for r in records_of(member):
            out += [r[3], r[4]]
        return out

    def go_past(self, mem, found, w):
        """Force, and fewer than k members are current: (record, in force,
        base, current, goes) of the newest older record that enough of those
        present accepted, or None."""
        records = [r for i in bits(found) for r in records_of(mem[i])]
        older = {c[:3] for i in bits(found) for c in self.names(mem[i])
                 if c[0] < w[0]}
        for c in sorted(older, reverse=True):
            current = sum(1 << i for i in bits(found & c[2])
                          if self.has_been(mem[i][1], i, c))
            current = self.marked(mem, current)
            if self.slots(current) >= self.k:
                source, known, base = \
                    self.what_is_known(mem, found, records, c)
                return c, known, base, current, \
                    self.which_go(source, c, current)
        return None

    def marked(self, mem, current):
        """Of members that force would use, those of which the bitmaps of the
        newest of them say all that they lack: no record with every slot active
        came between, in which they were not."""
        newest = max((mem[i][1] for i in bits(current)), default=None,
                     key=lambda acc: acc[:2])
        out = 0
        for i in bits(current):
            acc = mem[i][1]
            dropped = self.slots(newest[2]) == self.nr_of(newest) and \
                not newest[2] >> i & 1
            if acc[:3] == newest[:3] or acc[:2] in newest[5] and not dropped:
                out |= 1 << i
        return self.undoubled(mem, out, newest)

    def undoubled(self, mem, current, newest):
        """Without those that lack something that the other one of their slot
        has."""
        whole = sum(1 << i for i in bits(current)
                    if mem[i][1][:3] == newest[:3])
        return sum(1 << i for i in bits(current) if whole >> i & 1 or
                   not any(self.slot[j] == self.slot[i]
                           for j in bits(whole)))

    def has_been(self, acc, i, c):
        """Has a member with this accepted record been current in c?"""
        return acc and (acc[:3] == c or acc[0] > c[0] and acc[2] >> i & 1 and
                        c[:2] in acc[5])

    def decide(self, mem, found):
        """(opens, winner, in force, base, current, goes, why)"""
        named = set()
        records = []
        for i in bits(found):
            records += records_of(mem[i])
            named.update(c[:3] for c in self.names(mem[i]))
        if not named:
            return False, None, False, None, 0, 0, "none"
        w = self.pick_winner(mem, found, named)
        source, known, base = self.what_is_known(mem, found, records, w)
        if not self.without & {"no-branch", "goback"}:
            for i in bits(found):
                if self.branch_of(mem[i], w, source[5], w[2] >> i & 1):
                    return False, w, known, base, 0, 0, "branch"
        current = 0
        for i in bits(found & w[2]):
            acc = mem[i][1]
            if acc and (acc[:3] == w or acc[0] >= base[0] and
                        self.was_proposed(mem[i], i, w)):
                current |= 1 << i
        goes = self.which_go(source, w, current)
        if self.slots(current) < self.k:
            return False, w, known, base, current, goes, "data"
        if nbits(current) < self.quorum(nbits(w[2])):
            return False, w, known, base, current, goes, "quorum"
        if not known and "no-base" not in self.without:
            b = nbits(base[2])
            need = self.quorum(b)
            if nbits(base[2] & found) < need or \
               nbits(base[2] & current) < b - need + 1:
                return False, w, known, base, current, goes, "base"
        return True, w, known, base, current, goes, ""

    def legal(self, run, active):
        cur, base = run["cur"], run["base"]
        if active & ~cur[2] and cur[2] & ~active and \
           "swap" not in self.without:
            return False
        return self.slots(active) >= self.k and \
            nbits(active & cur[2]) >= self.k and \
            ("keep-base" in self.without or
             nbits(active & base[2]) >= self.k)

    # ---- what is checked after every crash ----------------------------

    def common(self, mem, mask):
        """The writes that all of these members have."""
        have = -1
        for i in bits(mask):
            have &= mem[i][2]
        return have

    def check(self, mem, writes, last):
        used = sum(1 << i for i in range(self.nr) if records_of(mem[i]))
        found = used
        # With an old image among them only all together can know.
        while found and (found == used or not self.images):
            opens, w, known, base, current, goes, why = \
                self.decide(mem, found)
            if opens and goes & last[2]:
                raise Broken("%s open, and one goes that was read" %
                             list(bits(found)))
            if opens:
                for i in bits(current):
                    if mem[i][2] & writes != writes and not self.force:
                        raise Broken("%s open, but %d lacks a write" %
                                     (list(bits(found)), i))
                    # Those that force made go past a record may differ until
                    # the one that it made is in force.
                    if mem[i][2] != mem[bits(current)[0]][2] and \
                       not (self.force and any(mem[j][1][:3] != w
                                               for j in bits(current))):
                        raise Broken("%s open, current ones differ" %
                                     list(bits(found)))
                have = self.common(mem, current)
                for i in bits(found & ~current if self.force else 0):
                    if mem[i][2] & ~have:
                        raise Broken("%s open, and what %d has is lost" %
                                     (list(bits(found)), i))
                if not self.force and w[:2] != last[:2] and not any(
                        last[:2] in r[5] for i in bits(found)
                        for r in records_of(mem[i]) if
                        (r[:3] == w or w in r[3:5])):
                    raise Broken("%s open behind %s" %
                                 (list(bits(found)), last[:2]))
            if why == "branch" and not found & ~w[2] and not any(
                    c[0] >= w[0] and c[:2] != w[:2]
                    for i in bits(found) for c in self.names(mem[i])):
                raise Broken("%s look like branches, and nothing newer is "
                             "there" % list(bits(found)))
            if why == "branch" and not self.force and not self.images:
                raise Broken("%s look like branches" % list(bits(found)))
            if found == used and not opens and not self.force and \
               not self.images:
                raise Broken("all are there and refused: %s" % why)
            found = (found - 1) & used
