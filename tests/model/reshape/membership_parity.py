# gpuraid: one more parity member in the record of membership, as a model:
# rules A1 to A4.  What an array of k + m does is in ../membership_rules.py and
# ../membership_sessions.py; here is what is added.  parity.py explores it.
#
# Members 0 to k + m - 1 are those of the array.  The others can be NEW: their
# slot is k + m, which the array has only while parity is added, and after
# that.  With `replace' the last one can replace member 0.
#
# Each record has its own m and `fixed', and two more bits.  They are part of
# its name, so of each base and parent too: the session number is that of the
# opening times SHAPES, plus
#
#   WIDE     its m is m + 1
#   FIXED    slot k + m is in `fixed': its parity does not rotate
#   FIRST    no member of that slot was active since it was added
#   LISTS    the device table has a member in that slot
#   WAS      a member of it was active: only the checks look at this
#
# SPDX-License-Identifier: BSD-3-Clause

from membership_rules import Broken, bits, nbits, records_of
from membership_sessions import ACCEPT, IDLE, PROPOSE, Model, with_writes

WIDE, FIXED, FIRST, LISTS, WAS, SHAPES = 1, 2, 4, 8, 16, 32

RULES = {
    "counts-at-once": "slot k + m counts for M4 before it was ever active",
    "found-new": "M4 counts a NEW that was never active as found",
    "degraded": "parity is added while a slot is not active",
    "with-target": "parity is added while a member is rebuilt or replaced",
    "active-at-once": "the record that adds the slot has NEW active in it",
    "not-listed": "the record that adds the slot does not have NEW in its"
                  " table",
    "drop-m": "a member fails while that record is proposed: the next one has"
              " m + 1 too",
    "drop-lists": "the next one has NEW in its table",
    "drop-fixed": "the next one has the slot in `fixed'",
    "no-bit": "FIRST is not in the record: a slot that has no active member"
              " in it was never active",
    "bit-forgotten": "FIRST does not last over a restart",
    "bit-cleared": "it is cleared when NEW's activation is proposed, and stays"
                   " so if that is dropped",
    "bit-kept": "it is cleared by the next record, not by the one with NEW"
                " active",
    "cancel-late": "parity is taken back although NEW is active",
    "cancel-lost": "parity is taken back although NEW was active before it"
                   " failed",
    "cancel-lists": "NEW stays in the table of the record that takes it back",
    "any-slot": "a member that says so itself is a target in slot k + m",
    "own-m": "m comes from the superblock of a member that is looked at",
}


def shape_of(name):
    return name[1] % SHAPES


class Parity(Model):
    def __init__(self, k, m, extra=1, confirm=False, replace=False,
                 **options):
        super().__init__(k, m, extra + replace, **options)
        self.confirm = confirm
        # new: the members that slot k + m can have
        self.new = (1 << self.n + extra) - (1 << self.n)
        self.slot = [min(i, self.n) for i in range(self.n + extra)] + \
            [0] * replace
        self.nr_slots = [len({self.slot[i] for i in bits(mask)})
                         for mask in range(self.all + 1)]
        self.alike = list(range(1 if replace else 0, self.n))
        self.session *= SHAPES

    # ---- what a record says ---------------------------------------------

    hides = 1

    def shape(self, name):
        return shape_of(name)

    def nr_of(self, name):
        """The slots of a record."""
        return self.n + (1 if shape_of(name) & WIDE else 0)

    def counted(self, name):
        """m, as M4 counts it."""
        return self.nr_of(name) - self.k - (
            1 if shape_of(name) & FIRST and
            "counts-at-once" not in self.without else 0)

    def follows(self, old, active):
        """The shape of a record after one of this shape."""
        if not old & WIDE:
            return old
        new = old & ~LISTS
        if active & self.new:
            new |= WAS
            if "bit-kept" not in self.without or old & WAS:
                new &= ~FIRST
        return new

    def remembered(self, run):
        """The shape of the record to go on from."""
        shape = shape_of(run["cur"])
        if "bit-forgotten" in self.without and "clean" not in run:
            shape &= ~FIRST         # at an opening
        if "no-bit" in self.without and shape & WIDE and \
           not run["cur"][2] & self.new:
            shape |= FIRST
        return shape

    # ---- the rules ------------------------------------------------------

    def used(self, mem, found, w):
        """The record whose m an opener takes: of the winner alone."""
        if "own-m" in self.without:
            return records_of(mem[bits(found)[0]])[-1]
        return w

    def decide(self, mem, found):
        opens, w, known, base, current, goes, why = super().decide(mem, found)
        if opens and self.may_hide(w, found, current):
            opens, why = False, "few"
        return opens, w, known, base, current, goes, why

    def may_hide(self, w, found, current, old_slots=False):
        """The second half of M4: may the absent ones have gone on?"""
        m = self.counted(w)
        if shape_of(w) & FIRST and (old_slots or
                                    "found-new" not in self.without):
            found &= ~self.new
        return m >= self.k and nbits(found) <= self.k and \
            nbits(current) < nbits(w[2])

    def start(self):
        mem, writes, last = super().start()
        # 0: no session yet, 1: none lost a member but a NEW, 2: one did
        return mem, writes, last + (0,)

    def open(self, state, found, force):
        run = super().open(state, found, force)
        if run is None:
            return None
        fresh = state[2][3] < 2 and \
            not ((1 << self.n) - 1 | run["cur"][2]) & ~found
        return dict(run, clean=1 if fresh else 2)

    def propose(self, run, active):
        run = dict(run)
        shape = run.pop("shape", None)
        if shape is None:
            shape = self.follows(self.remembered(run), active)
        leaves = run.pop("leaves", False)
        if (run["target"] | active) & self.new and not leaves:
            shape |= LISTS
        run["session"] = run["session"] // SHAPES * SHAPES + shape
        return super().propose(run, active)

    def fail(self, run, y):
        nxt, cur = run["next"], shape_of(run["cur"])
        if run["phase"] == PROPOSE and shape_of(nxt) & WIDE:
            if not cur & WIDE:
                # the record that adds the slot is dropped
                if "drop-m" in self.without:
                    run = dict(run, shape=shape_of(nxt))
                elif "drop-fixed" in self.without:
                    run = dict(run, shape=FIXED)
                if not self.without & {"drop-m", "drop-lists"}:
                    run = dict(run, target=run["target"] & ~self.new)
            elif "bit-cleared" in self.without and \
                    cur & FIRST and not shape_of(nxt) & FIRST:
                run = dict(run, shape=cur & ~FIRST)
        if run["phase"] == ACCEPT and not shape_of(nxt) & WIDE:
            run = dict(run, target=run["target"] & ~self.new)
        return super().fail(run, y)

    def force_done(self, state, run):
        if not shape_of(run["next"]) & WIDE:
            run = dict(run, target=run["target"] & ~self.new)
        return super().force_done(state, run)

    def told(self, state, run):
        state, run = super().told(state, run)
        if "active-at-once" in self.without:
            mem = tuple([with_writes(x, 0) if self.new >> i & 1 else x
                         for i, x in enumerate(state[0])])
            state = (mem,) + state[1:]
        return state, run

    def stale(self, mem, run, found, current):
        if not shape_of(self.used(mem, found, run["cur"])) & WIDE and \
           "any-slot" not in self.without:
            found &= ~self.new
        return super().stale(mem, run, found, current)

    # ---- steps ----------------------------------------------------------

    def steps(self, state, run, events):
        if self.confirm and run["phase"] == IDLE and \
           self.differs(state[0], run["cur"]):
            yield "confirm", state, self.propose(run, run["cur"][2]), events
        for label, s2, r2, e2 in super().steps(state, run, events):
            clean = max(run["clean"], state[2][3])
            if label.startswith("fail"):
                y = int(label.split()[1])
                listed = run["cur"][2] | (run["next"] or (0, 0, 0))[2]
                if listed >> y & 1:
                    clean = 2
            if r2 is not None:
                r2["clean"] = clean
            yield label, s2[:2] + (s2[2][:3] + (clean,),), r2, e2

    def changes(self, state, run, events):
        active, cur = run["cur"][2], shape_of(run["cur"])
        has = {self.slot[i] for i in bits(run["target"])}   # M17
        barred = {"target %d" % i for i in range(self.nr)
                  if self.slot[i] in has or
                  not cur & WIDE and self.new >> i & 1}
        for step in super().changes(state, run, events):
            if step[0] not in barred:
                yield step
        if not cur & WIDE:
            if self.may_add(run):
                for x in bits(self.new):
                    yield self.add(state, run, events, x)
        elif self.may_cancel(cur, active):
            shape = 0
            left = active & ~self.new
            if "cancel-lists" in self.without:
                shape = LISTS
            yield "take back", state, \
                self.next_or_stop(dict(run, shape=shape, leaves=True), left), \
                events - 1

    def differs(self, mem, cur):
        """M18: has the record in force other members than its base?"""
        rec = mem[bits(cur[2])[0]][1]
        return rec[:3] == cur and rec[3][2] != cur[2]

    def may_add(self, run):
        """A1."""
        return (self.slots(run["cur"][2] & ~self.new) == self.n or
                "degraded" in self.without) and \
            (not run["target"] and not run["goes"] or
             "with-target" in self.without)

    def may_cancel(self, cur, active):
        """A4."""
        if "cancel-late" in self.without and active & self.new:
            return True
        return not active & self.new and (
            cur & FIRST or "cancel-lost" in self.without)

    def add(self, state, run, events, x):
        """A2: a member that is new, or that was wiped."""
        mem = state[0]
        active = run["cur"][2]
        m2 = mem[:x] + ((None, None, 0, mem[x][3]),) + mem[x + 1:]
        r2 = dict(run, shape=WIDE | FIXED | FIRST)
        r2["alive"] |= 1 << x
        if "active-at-once" in self.without:
            active |= 1 << x
            r2["shape"] = WIDE | FIXED | WAS
        elif "not-listed" not in self.without:
            r2["target"] |= 1 << x
        return "add parity %d" % x, (m2,) + state[1:], \
            self.propose(r2, active), events - 1

    # ---- what is checked after every crash ------------------------------

    def check(self, mem, writes, last):
        super().check(mem, writes, last)
        for x in mem:
            for r in records_of(x):
                self.check_record(r)
        names = self.named(mem, last) if last[3] == 1 else ()
        used = sum(1 << i for i in range(self.nr) if records_of(mem[i]))
        found = used
        while found:
            self.check_found(mem, found, names)
            found = (found - 1) & used

    def named(self, mem, last):
        """The last record in force, its base, and all that came after."""
        out = set()
        for x in mem:
            for r in records_of(x):
                out.update(c for c in (r[:3], r[3], r[4]) if c[0] >= last[0])
                if r[:2] == last[:2]:
                    out.add(r[3])
        return out

    def check_found(self, mem, found, names):
        opens, w, known, base, current, goes, why = self.decide(mem, found)
        if opens:
            if shape_of(self.used(mem, found, w)) & (WIDE | FIXED) != \
               shape_of(w) & (WIDE | FIXED):
                raise Broken("%s open with the m of another record" %
                             list(bits(found)))
            if shape_of(w) & FIRST and self.may_hide(w, found, current, True):
                raise Broken("%s open, and the others may have gone on" %
                             list(bits(found)))
            return
        if not names or any(self.slots(found & c[2]) < self.k
                            for c in names):
            return
        if why == "data":
            raise Broken("%s have the data, and none can read it" %
                         list(bits(found)))
        if all(nbits(found & c[2]) >= self.quorum(nbits(c[2]))
               for c in names):
            raise Broken("%s are enough of every record, and refused: %s" %
                         (list(bits(found)), why))

    def check_record(self, r):
        for c in (r[:3], r[3], r[4]):
            shape = shape_of(c)
            where = "the record %d of %s" % (c[0], list(bits(c[2])))
            if not shape & WIDE and (shape & LISTS or c[2] & self.new):
                raise Broken("%s has a member in a slot that it has not" %
                             where)
            if bool(shape & FIXED) != bool(shape & WIDE):
                raise Broken("%s has the slots of one geometry and `fixed' of"
                             " another" % where)
            if shape & WIDE and bool(shape & FIRST) == bool(shape & WAS):
                raise Broken("%s says wrongly whether slot %d was ever active"
                             % (where, self.n))
            if shape & WAS and not shape & WIDE:
                raise Broken("%s: what is not there was active" % where)
        new, old = shape_of(r), shape_of(r[4])
        if new & WIDE and not old & WIDE:
            if self.slots(r[2] & ~self.new) < self.n:
                raise Broken("parity is added while a slot is not active")
            if not new & LISTS:
                raise Broken("parity is added without a member for it")
        if old & WAS and not new & WIDE:
            raise Broken("taken back, and NEW was active")

    # ---- states seen as one ---------------------------------------------

    def rename(self, names, session):
        no, shape = divmod(session, SHAPES)
        return names.setdefault(no, len(names)) * SHAPES + shape
