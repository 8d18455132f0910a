# gpuraid: the model of added parity (membership_parity.py) with dirty bits: D2
# and M19.
#
# The last part of a record is *whole*, the epoch of the last one with every
# slot active.  There are two regions.  One is written again and again; the
# other was written long ago, and never since.  What a member holds is DATA, all
# that was acknowledged in the one, OLD, the content of the other, and MARK: the
# one is marked as missed.  A member that comes back and is covered gets what is
# marked; any other is rebuilt in full.
#
# SPDX-License-Identifier: BSD-3-Clause

from membership_rules import bits, records_of
from membership_parity import FIRST, WIDE, Parity, shape_of
from membership_sessions import ACCEPT, with_writes

DATA, MARK, OLD = 1, 2, 4

RULES = {
    "mark-first": "D2 does not count slot k + m before it was ever active",
    "mark-absent": "D2 does not count slot k + m once its member has failed",
    "whole-first": "*whole* does not count it before it was ever active",
    "whole-absent": "*whole* does not count it once its member has failed",
    "covered-any": "a member that was never active is covered",
}


class Bitmap(Parity):
    def start(self):
        mem, writes, last = super().start()
        return tuple([(p + (1,), a + (1,), OLD, more) if a else
                      (p, a, have, more)
                      for p, a, have, more in mem]), writes, last

    # ---- the rules ------------------------------------------------------

    def every_slot(self, name, active, what):
        """Are all slots active that count for D2 ("mark") or for *whole*?"""
        count = self.nr_of(name)
        shape = shape_of(name)
        if shape & WIDE and not active & self.new and \
           what + ("-first" if shape & FIRST else "-absent") in self.without:
            count -= 1
        return self.slots(active) == count

    def whole(self, cur, whole):
        """After the record cur, which says this of itself."""
        return max(whole, cur[0]) if self.every_slot(cur, cur[2], "whole") \
            else whole

    def covered(self, acc, x, cur, whole, seen):
        """M19."""
        return acc and (acc[2] >> x & 1 or "covered-any" in self.without) and \
            acc[0] >= self.whole(cur, whole) and \
            (acc[:3] == cur or acc[:2] in seen)

    # ---- what a record says of *whole* ------------------------------------

    def propose(self, run, active):
        run = super().propose(run, active)
        run["next"] += (self.whole(run["cur"], run["whole"]),)
        run["by"] &= run["target"] | run["ready"]
        return run

    def stale(self, mem, run, found, current):
        records = [r for i in bits(found) for r in records_of(mem[i])]
        source = self.what_is_known(mem, found, records, run["cur"])[0]
        run["whole"], run["by"] = source[7], 0
        target = super().stale(mem, run, found, current)
        for x in bits(target):
            if self.covered(mem[x][1], x, run["cur"], source[7], source[5]):
                run["by"] |= 1 << x
        return target

    def fail(self, run, y):
        if run["phase"] == ACCEPT:
            run = dict(run, whole=run["next"][7])
        return super().fail(run, y)

    def force_done(self, state, run):
        return super().force_done(state, dict(run, whole=run["next"][7]))

    # ---- what members get -----------------------------------------------

    def told(self, state, run):
        """All is written once."""
        before = state[0]
        state, run = super().told(state, run)
        name, active = run["cur"], run["cur"][2]
        mark = 0 if self.every_slot(name, active, "mark") else MARK
        mem = tuple([with_writes(x, x[2] | before[i][2] & OLD |
                                 (mark if active >> i & 1 else 0))
                     for i, x in enumerate(state[0])])
        return (mem,) + state[1:], run

    def changes(self, state, run, events):
        for label, s2, r2, e2 in super().changes(state, run, events):
            if label.startswith("target"):
                x = int(label.split()[1])
                if self.covered(state[0][x][1], x, run["cur"], run["whole"],
                                run["seen"]):
                    r2["by"] |= 1 << x
            yield label, s2, r2, e2

    def activate(self, state, run, events, x):
        mem = state[0]
        like = mem[bits(run["cur"][2])[0]][2]
        for label, s2, r2, e2 in super().activate(state, run, events, x):
            if run["by"] >> x & 1:
                have = mem[x][2] & (DATA | OLD)
                if like & MARK:
                    have |= like & (DATA | MARK)
                after = with_writes(s2[0][x], have)
                s2 = (s2[0][:x] + (after,) + s2[0][x + 1:],) + s2[1:]
            yield label, s2, r2, e2
