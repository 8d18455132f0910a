# gpuraid: the sessions of the model of membership: an opening, the records
# that it puts in force, and what can happen meanwhile.  membership_rules.py
# says what a state is and what is decided.
#
# SPDX-License-Identifier: BSD-3-Clause

from membership_rules import Rules, bits, nbits, records_of

IDLE, PROPOSE, ACCEPT, TELL = "idle", "propose", "accept", "tell"


def with_writes(member, have):
    return member[:2] + (have,) + member[3:]


class Model(Rules):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        # members that may change places: those whose slot is theirs alone
        self.alike = [i for i in range(self.nr)
                      if self.slot.count(self.slot[i]) == 1]
        self.moved = {}
        self.session = 1000             # of the next opening

    # ---- steps ----------------------------------------------------------

    def start(self):
        full = (1 << self.n) - 1
        first = (1, 0, full)
        rec = first + (first, first, (), 0)
        more = (rec, rec, 0, 0) if self.copies else ()
        none = (None, None, 0, 0) if self.copies else ()
        mem = tuple((rec, rec, 0, more) if i < self.n else
                    (None, None, 0, none)
                    for i in range(self.nr))
        return self.canonical(mem, 0, (1, 0, 0))

    def open(self, state, found, force):
        mem, writes, last = state
        opens, w, known, base, current, goes, why = self.decide(mem, found)
        past = self.go_past(mem, found, w) if force and why == "data" else None
        if past:
            w, known, base, current, goes = past
        elif not opens and not (force and why in ("quorum", "base")):
            return None
        run = {"cur": w, "base": w if known else base, "alive": found,
               "session": self.session, "target": 0, "ready": 0, "epoch": 0,
               "seen": frozenset(), "doomed": False, "opened": False,
               "before": mem, "goes": goes,
               "past": current if self.force else 0}
        saw = self.seen_by(mem, found, w)
        for i in bits(found):
            before = run["seen"]
            self.meet(run, mem[i])
            if w[2] >> i & 1 and "past-seen" not in self.without:
                run["seen"] = before | {b for b in run["seen"]
                                        if b in saw or b[0] >= w[0]}
        if past and "past-seen" not in self.without:
            run["seen"] = frozenset(b for b in run["seen"] if b[0] <= w[0])
        run["target"] = 0 if force else self.stale(mem, run, found, current)
        return self.propose(run, current)

    def seen_by(self, mem, found, w):
        """What the maker of a record had seen.  Of a member that it lists
        nothing older needs to be noted but that: it may be what force went
        past."""
        records = [r for i in bits(found) for r in records_of(mem[i])]
        return self.what_is_known(mem, found, records, w)[0][5]

    def stale(self, mem, run, found, current):
        """Present members that become targets: of slots that lack one."""
        have = {self.slot[i] for i in bits(current)}
        out = 0
        for i in bits(found & ~current):
            if records_of(mem[i]) and self.slot[i] not in have:
                have.add(self.slot[i])
                out |= 1 << i
        return out

    def meet(self, run, member):
        for r in records_of(member):
            run["epoch"] = max(run["epoch"], r[0])
            run["seen"] |= {r[:2], r[3][:2], r[4][:2]} | set(r[5])

    def give_up(self, mem, past):
        """All have accepted a record.  If force has made it, and went past
        another one, what was written since is lost, also where some of them
        have it."""
        have = self.common(mem, past)
        return tuple([with_writes(x, x[2] & have) if past >> i & 1 else x
                      for i, x in enumerate(mem)])

    def propose(self, run, active):
        run = dict(run)
        if "sessions" in self.without:
            run["epoch"] = run["cur"][0] + 1
            run["session"] += 1
        else:
            run["epoch"] += 1
        me = (run["epoch"], run["session"])
        goes = run["goes"]
        for x in bits(active & ~run["cur"][2]):
            goes |= sum(1 << y for y in bits(run["cur"][2])
                        if self.slot[x] == self.slot[y])
        run["next"] = me + (active, run["base"], run["cur"],
                            tuple(sorted(run["seen"] - {me})),
                            self.settle(active, goes))
        run["seen"] = run["seen"] | {me}
        run["phase"], run["got"] = PROPOSE, 0
        return run

    def next_or_stop(self, run, active):
        return self.propose(run, active) if self.legal(run, active) else None

    def takers(self, run):
        """The receivers of the record now: its members until it is in force,
        then the targets."""
        if run["phase"] == TELL:
            return run["target"]
        if "told-early" in self.without:
            return run["next"][2] | run["target"]
        return run["next"][2]

    def fail(self, run, y):
        """Member y is lost: the run that continues without it, or None."""
        gone = 1 << y
        run = dict(run, alive=run["alive"] & ~gone,
                   target=run["target"] & ~gone, ready=run["ready"] & ~gone)
        if run["phase"] in (IDLE, TELL):
            return self.next_or_stop(run, run["cur"][2] & ~gone)
        nxt = run["next"]
        if run["phase"] == ACCEPT:
            # it was finished on the others: go on from it
            run["cur"], run["goes"] = nxt[:3], nxt[6]
            if not nxt[2] & gone or "base-moves" in self.without:
                run["base"] = nxt[:3]
            run["target"] &= ~nxt[2]
        active = nxt[2] & ~gone
        if gone & run["cur"][2] and "swap" not in self.without:
            added = active & ~run["cur"][2]     # they wait
            run["target"] |= added
            run["ready"] |= added
            active &= ~added
        if not nxt[2] & gone:
            return self.propose(run, active)
        return self.next_or_stop(run, active)

    def force_done(self, state, run):
        """The record is in force."""
        nxt = run["next"]
        run = dict(run, phase=TELL, past=0, cur=nxt[:3], base=nxt[:3],
                   opened=True, goes=nxt[6])
        run["ready"] &= ~nxt[2]
        run["target"] &= ~nxt[2]
        run["got"] = run["target"] if "told-early" in self.without else 0
        read = sum(1 << x for x in bits(nxt[2] & ~nxt[6])
                   if any(self.slot[x] == self.slot[y] for y in bits(nxt[6])))
        state = state[:2] + (nxt[:2] + (read,),)
        return (state, run) if self.takers(run) & ~run["got"] else \
            self.told(state, run)

    def told(self, state, run):
        """The targets have the record too, and something is written."""
        mem, writes, last = state
        nxt = run["next"]
        run = dict(run, phase=IDLE, got=0)
        mem = list(mem)
        top = max([0] + [x[2].bit_length() for x in mem] +
                  [writes.bit_length()])
        if not self.force:
            top = 0             # one bit: has all of them
            mem = [with_writes(x, 0) for x in mem]
        gets = nxt[2]
        if "early-resync" in self.without:
            gets &= ~nxt[6]
        for i in bits(gets | run["ready"]):
            mem[i] = with_writes(mem[i], mem[i][2] | 1 << top)
        for i in bits(run["target"] & ~run["ready"]):
            mem[i] = with_writes(mem[i], 0)
        return (tuple(mem), writes | 1 << top, last), run

    def deliver(self, member, rec, accept):
        """(label, what a member holds, whether it is done) while it is
        given a record."""
        prop, acc, have, more = member
        if not self.copies:
            if accept:
                yield "accept", (prop, rec, have, more), True
                return
            yield "propose", (rec, acc, have, more), True
            if "together" in self.without:
                yield "torn", (None, acc, have, more), False
            return
        # The place that is written first is the one with the older or
        # torn copy; without that rule, A.  in_a: the newer one is in A
        # and the copies differ.
        for label, one, other, in_a in self.two_places(
                member[accept], more[accept], more[2 + accept], rec):
            new = list(member[:2])
            rest = list(more)
            new[accept], rest[accept], rest[2 + accept] = one, other, in_a
            yield label, (new[0], new[1], have, tuple(rest)), label == "both"

    def tell(self, member, rec):
        """The same for a target: it is proposed and then accepted."""
        for label, after, done in self.deliver(member, rec, False):
            if done:
                yield from self.deliver(after, rec, True)
            yield label, after, False

    def two_places(self, newest, other, in_a, rec):
        if "a-first" in self.without and in_a:
            newest, other = other, newest       # goes on with the other
        yield "torn first", newest, None, 0
        yield "first", rec, newest, 1
        yield "torn second", rec, None, 1
        yield "both", rec, rec, 0

    def steps(self, state, run, events):
        """(label, state, run, events) of everything that can be next."""
        mem = state[0]
        if run["phase"] != IDLE:
            accept = run["phase"] != PROPOSE
            takers = self.takers(run)
            todo = takers & ~run["got"]
            for i in bits(todo):
                how = self.tell(mem[i], run["next"]) \
                    if run["phase"] == TELL else \
                    self.deliver(mem[i], run["next"], accept)
                for label, after, done in how:
                    m2 = mem[:i] + (after,) + mem[i + 1:]
                    if run["phase"] == ACCEPT and todo == 1 << i and done:
                        m2 = self.give_up(m2, run["past"] & run["next"][2])
                    yield "%s %d" % (label, i), (m2,) + state[1:], \
                        dict(run, got=run["got"] | 1 << i,
                             doomed=run["doomed"] or not done), events
            if run["doomed"]:
                yield "crash", state, None, 0
                if self.rot:
                    yield from self.rots(state)
                return
            if not todo:
                if run["phase"] == TELL:
                    s2, r2 = self.told(state, run)
                    yield "all told, write", s2, r2, events
                elif accept:
                    s2, r2 = self.force_done(state, run)
                    yield "in force" + (", write" if r2["phase"] == IDLE
                                        else ""), s2, r2, events
                else:
                    yield "all proposed", state, \
                        dict(run, phase=ACCEPT, got=0), events
            all_members = run["next"][2] | run["target"]
            if events and not accept:
                for y in bits(all_members):
                    yield "fail %d" % y, state, self.fail(run, y), events - 1
            if events and accept:
                # all others must have it by then
                for y in bits(all_members):
                    if takers & ~run["got"] & ~(1 << y) == 0:
                        yield "fail %d" % y, state, self.fail(run, y), \
                            events - 1
        elif events:
            yield from self.changes(state, run, events)
        yield "crash", state, None, 0
        if self.rot:
            yield from self.rots(state)
        if self.images and run["opened"]:
            # an image of before the session is put back
            for i in bits(self.all):
                if run["cur"][2] & ~(1 << i) == 0:
                    continue    # no member would know
                old = with_writes(run["before"][i], 0)
                yield "crash, image %d" % i, \
                    (mem[:i] + (old,) + mem[i + 1:],) + state[1:], None, 0

    def rots(self, state):
        """One copy, once; the other one of its pair is good."""
        mem = state[0]
        if any(None in x[:2] + x[3][:2] for x in mem if records_of(x)):
            return
        for i, (prop, acc, have, (prop2, acc2, prop_a, acc_a)) in \
                enumerate(mem):
            if not prop:
                continue
            for label, after in (
                    ("older proposed", (prop, acc, have,
                                        (None, acc2, 1, acc_a))),
                    ("newer proposed", (prop2, acc, have,
                                        (None, acc2, 1, acc_a))),
                    ("older accepted", (prop, acc, have,
                                        (prop2, None, prop_a, 1))),
                    ("newer accepted", (prop, acc2, have,
                                        (prop2, None, prop_a, 1)))):
                yield "crash, %s of %d rots" % (label, i), \
                    (mem[:i] + (after,) + mem[i + 1:],) + state[1:], None, 0

    def changes(self, state, run, events):
        mem, writes, last = state
        active = run["cur"][2]
        for y in bits(active | run["target"]):
            s2 = state
            if "early" in self.without and active >> y & 1 and \
               self.slots(active & ~(1 << y)) >= self.k:
                s2 = (mem[:y] + (with_writes(mem[y], 0),) + mem[y + 1:],
                      writes, last)
            yield "fail %d" % y, s2, self.fail(run, y), events - 1
        for x in bits(run["target"]):
            yield from self.activate(state, run, events, x)
        for x in bits(self.all & ~active & ~run["target"]):
            twin = [i for i in bits(active) if self.slot[i] == self.slot[x]]
            if twin and records_of(mem[x]):
                continue        # replaced before
            if self.is_branch(mem[x], run) and \
               "no-branch" not in self.without:
                continue
            r2 = dict(run)
            self.meet(r2, mem[x])
            r2["alive"] |= 1 << x
            r2["target"] |= 1 << x
            if "late-target" in self.without:
                m2 = mem[:x] + (with_writes(mem[x], 0),) + mem[x + 1:]
                yield "rebuild %d" % x, (m2,) + state[1:], r2, events - 1
                continue
            yield "target %d" % x, state, self.propose(r2, active), events - 1
        for x in bits(run["goes"]):
            yield "remove %d" % x, state, \
                self.next_or_stop(run, active & ~(1 << x)), events - 1

    def is_branch(self, member, run):
        """Would a readd join another branch?"""
        return any(c[:2] not in run["seen"] for c in self.names(member))

    def activate(self, state, run, events, x):
        """Target x is rebuilt."""
        mem, writes, last = state
        active = run["cur"][2]
        like = mem[bits(active)[0]][2]
        m2 = mem[:x] + (with_writes(mem[x], like),) + mem[x + 1:]
        r2 = dict(run, ready=run["ready"] | 1 << x)
        s2 = (m2,) + state[1:]
        r2["target"] &= ~(1 << x)
        new = active | 1 << x
        if "swap" in self.without:
            for i in bits(active):
                if self.slot[i] == self.slot[x]:
                    new &= ~(1 << i)
        yield "add %d" % x, s2, self.next_or_stop(r2, new), events - 1

    # ---- states seen as one ---------------------------------------------

    def canonical(self, mem, writes, last):
        """Members sorted, sessions renamed, seen cut to what can matter."""
        def key(i):
            p, a, h = mem[i][:3]
            return (p[0] if p else 0, a[0] if a else 0, h,
                    nbits(p[2]) if p else 0, nbits(a[2]) if a else 0)
        order = list(range(self.nr))
        for i, j in zip(self.alike, sorted(self.alike, key=key)):
            order[i] = j
        order = tuple(order)
        if order not in self.moved:
            self.moved[order] = [
                sum(1 << new for new, old in enumerate(order)
                    if mask >> old & 1) for mask in range(self.all + 1)]
        moved = self.moved[order]
        keep = {last[:2]}
        for x in mem:
            for r in records_of(x):
                keep.add(r[3][:2])
                keep.add(r[4][:2])
            # The other copy counts when that of the newest one rots.
            keep.update(r[:2] for r in (x[1],) + x[3][1:2] if r)
        names = {}
        cache = {None: None}

        def bset(b):
            return b[0], self.rename(names, b[1]), moved[b[2]]

        def rec(r):
            if r in cache:
                return cache[r]
            me, base, parent = bset(r), bset(r[3]), bset(r[4])
            seen = []
            for b in r[5]:
                if b in keep:
                    seen.append((b[0], self.rename(names, b[1])))
            seen.sort()
            cache[r] = out = me + (base, parent, tuple(seen),
                                   moved[r[6]]) + r[7:]
            return out

        mem2 = tuple([(rec(p), rec(a), h,
                       more and (rec(more[0]), rec(more[1])) + more[2:])
                      for p, a, h, more in [mem[i] for i in order]])
        return mem2, writes, (last[0], self.rename(names, last[1]),
                              moved[last[2]]) + last[3:]

    def rename(self, names, session):
        return names.setdefault(session, len(names))
