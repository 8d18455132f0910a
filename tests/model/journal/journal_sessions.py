# gpuraid: a session of the journal's model: the steps of transactions,
# members that fail, one that is rebuilt, the crash, the opening after it,
# and what must be true then.  journal.py tries all of it.
#
# SPDX-License-Identifier: BSD-3-Clause

from itertools import product

from journal_disk import (BLOCK, Broken, HDR, MISSED, PAGE, TORN, ZERO, bits,
                          flushed, is_flushed, newest, reverted)
from journal_recovery import (Opening, in_place, missed, relog, write_block,
                              write_header, write_missed, write_page)
from journal_rules import (BEGUN, DONE, MET, PLACED, Run, Transactions,
                           WRITTEN)

# What recovery has written, and not flushed yet.
AGAIN, PLACE, HEAD1, HEAD2 = range(4)
PHASES = "records again", "recovered in place", "fresh header", "other header"


class Model(Transactions):

    # ---- members that fail ---------------------------------------------------

    def surely(self, member, row, slot):
        """The content of a row of a member that leaves, if only one is
        possible, else TORN.  None: its page is torn, and it is copied in any
        case when it returns."""
        out = set()
        for a, b in product(*member[PAGE]) if self.sums else ():
            page = newest((a, b))
            if a is None or b is None:
                if "torn-return" not in self.without:
                    continue
                out.add(TORN)
                continue
            entry = page[1][row]
            for block in member[BLOCK][row]:
                if entry == ZERO:
                    out.add(self.code.block(slot, self.code.zeroes))
                else:
                    out.add(block if block == entry[0] else TORN)
        if not self.sums:
            out = set(member[BLOCK][row])
        if not out:
            return None
        return out.pop() if len(out) == 1 else TORN

    def leave(self, run, y):
        """A record without y is in force."""
        member = run.mem[y]
        left = ~(1 << y)
        out = list(run.out)
        out[y] = (None,) * self.rows
        if not run.rot >> y & 1:
            out[y] = tuple([self.surely(member, row, y)
                            for row in range(self.rows)])
        mem = list(run.mem)
        mem[y] = None
        if "R6" in self.without:
            mem[y] = member
            out[y] = None
        rows = 0
        txs = []
        for tx in run.txs:
            if tx.phase != DONE:
                for r in tx.rows:
                    rows |= 1 << r[0]
            if tx.phase == PLACED and not tx.wait & left:
                tx = tx._replace(phase=DONE)
            txs.append(tx._replace(parts=tx.parts & left,
                                   wait=tx.wait & left))
        if run.rec:
            rows = run.rec[1].live if run.rec[0] < HEAD1 else 0
        run = run._replace(mem=tuple(mem), out=tuple(out), txs=tuple(txs),
                           alive=run.alive & left,
                           listed=run.listed & left
                           if "R6" not in self.without else run.listed,
                           said=None)
        if rows and "missed-leave" not in self.without and \
           ("missed" not in self.without or not run.rec):
            mem = list(run.mem)
            for s in bits(run.alive):
                mem[s] = write_missed(mem[s], rows)
            run = run._replace(mem=tuple(mem))
        return run

    def fails(self, run):
        for y in bits(run.alive):
            left = run.alive & ~run.rot & ~(1 << y)
            if left.bit_count() >= self.k:
                yield "fail %d" % y, self.leave(run, y)
        if run.target:
            yield "target fails", self.drop_target(run)

    # ---- a member that is rebuilt ----------------------------------------------

    def rebuild(self, run):
        if not run.target:
            for s in range(self.n):
                if run.left[2] and run.mem[s] is None:
                    entries = (ZERO,) * self.rows
                    mem = list(run.mem)
                    mem[s] = ((((1, 0, 1),), ((0, 0, 1),)),
                              ((None,),) * self.ring,
                              (((1, entries, 0),), ((0, entries, 0),)),
                              ((TORN,),) * self.rows, ((0,),))
                    yield "target %d" % s, run._replace(
                        mem=tuple(mem), target=(s, 0, 0, None),
                        left=run.left[:2] + (run.left[2] - 1, run.left[3]))
            return
        slot, cursor, copied, read = run.target
        if copied > cursor:
            mem = list(run.mem)
            if "target-cursor" not in self.without:
                mem[slot] = flushed(mem[slot])
            yield "cursor %d" % copied, run._replace(
                mem=tuple(mem), target=(slot, copied, copied, None))
        elif cursor < self.rows:
            yield from self.copy(run)
        elif "R10" in self.without or not run.txs and run.room == run.seq:
            yield "activate %d" % slot, self.activate(run, slot)

    def drop_target(self, run):
        """The target is gone, and is copied in full some day."""
        if not run.target:
            return None
        s = run.target[0]
        mem, out = list(run.mem), list(run.out)
        mem[s], out[s] = None, (None,) * self.rows
        txs = []
        for tx in run.txs:
            wait = tx.wait & ~(1 << s)
            done = tx.phase == PLACED and not wait
            txs.append(tx._replace(wait=wait,
                                   phase=DONE if done else tx.phase))
        return run._replace(mem=tuple(mem), out=tuple(out), target=None,
                            txs=tuple(txs))

    def may_be_copied(self, run, row):
        for tx in run.txs:
            for r in tx.rows if tx.phase < PLACED else ():
                if r[0] == row and "R10-copy" not in self.without and not (
                        "R15" in self.without and "d" in r[2]):
                    return False
        return True

    def copy(self, run):
        slot, cursor, copied, read = run.target
        if read is None:
            if not self.may_be_copied(run, cursor):
                return
            read = self.read_row(run, slot, cursor)
            if "R10-copy" in self.without:
                yield "read row %d" % cursor, run._replace(
                    target=(slot, cursor, cursor, read))
                return
        mem = list(run.mem)
        data, entry = read
        if entry != ZERO:
            mem[slot] = write_block(mem[slot], cursor, data)
        if self.sums:
            mem[slot] = write_page(mem[slot], ((cursor, entry),), 0,
                                   self.without)
            if mem[slot] is None:
                return
        yield "copy row %d" % cursor, run._replace(
            mem=tuple(mem), target=(slot, cursor, cursor + 1, None))

    def read_row(self, run, slot, row):
        """What a target is given, made from what lies in place."""
        good, generation = {}, 0
        for s in bits(run.alive):
            page = newest([p[0] for p in run.mem[s][PAGE]])
            good[s] = run.mem[s][BLOCK][row][0]
            if self.sums and page[1][row] == ZERO:
                good[s] = self.code.block(s, self.code.zeroes)
            elif self.sums and (s >= self.k or not generation):
                generation = page[1][row][1]
        try:
            content = self.code.block(slot, self.code.row(good))
        except Broken as e:
            # of a weaker rule: in place there is a mixture
            content, generation = TORN, generation or 1
        if self.sums and not generation:
            return content, ZERO
        return content, (content, generation)

    def activate(self, run, slot):
        mem = list(run.mem)
        mem[slot] = flushed(mem[slot])
        if "R10-headers" not in self.without:
            head = run.session, run.tail
            mem[slot] = ((((1,) + head,), ((0,) + head,)),) + mem[slot][1:]
        listed = run.listed | 1 << slot
        all_missed = mem[bits(run.alive)[0]][MISSED]
        if listed == (1 << self.n) - 1:
            all_missed = ((0,),)
        for s in bits(listed):
            mem[s] = mem[s][:MISSED] + (all_missed,)
        out = list(run.out)
        out[slot] = None
        run = run._replace(mem=tuple(mem), out=tuple(out), listed=listed,
                           alive=run.alive | 1 << slot, target=None)
        for row in range(self.rows) if self.sums and not run.txs else ():
            self.check_entries(run, row, run.values[row][0])
        return run

    # ---- everything that can be next -------------------------------------------

    def steps(self, run):
        if run.rec:
            yield self.carry_out(run)
            yield from self.fails(run)
            return
        yield from self.begins(run)
        yield from self.rebuild(run)
        if run.txs and run.txs[-1].phase == BEGUN:
            for label, r2 in self.records(run):
                yield "%s %d" % (label, run.txs[-1].seq), r2
        yield from self.withdraws(run)
        for nr, tx in enumerate(run.txs):
            if tx.phase == WRITTEN:
                yield "R1 %d" % tx.seq, self.meet(run, nr)
            if tx.phase == MET or \
               tx.phase == WRITTEN and "R1" in self.without:
                yield from self.places(run, nr)
        everyone = self.flush(run, run.alive | (
            1 << run.target[0] if run.target else 0))
        if everyone != run:
            yield "flush", everyone
        yield from self.free(run)
        yield from self.fails(run)
        for rule, label in (("R7", "flush error"), ("R9", "reconnect")):
            if rule in self.without:
                for y in bits(run.alive):
                    if is_flushed(run.mem[y]):
                        continue
                    mem = list(run.mem)
                    mem[y] = reverted(mem[y])
                    r2 = run._replace(mem=tuple(mem))
                    if rule == "R7":
                        r2 = self.flush(r2, 1 << y)
                    yield "%s %d" % (label, y), r2

    def places(self, run, nr):
        if not self.in_order(run, nr):
            return
        seq = run.txs[nr].seq
        plain = self.placed(run, nr, False)
        if plain:
            yield "in place %d" % seq, plain
        ahead = self.placed(run, nr, True)
        if ahead and ahead != plain:
            yield "in place %d, later ones in its pages" % seq, ahead

    def carry_out(self, run):
        """Recovery, after all members decided in memory: what was written
        is flushed, and the next is written."""
        phase, plan = run.rec
        mem = run.mem
        if not (phase == AGAIN and "relog-flush" in self.without or
                phase == PLACE and "place-flush" in self.without or
                phase == HEAD1 and "turn" in self.without):
            mem = tuple([x and flushed(x) for x in mem])
        return self.write_phase(run._replace(mem=mem), phase + 1)

    def write_phase(self, run, phase):
        plan, mem = run.rec[1], run.mem
        if phase == AGAIN:
            mem = relog(mem, plan)
        elif phase == PLACE:
            mem = in_place(mem, plan, self.sums, self.without)
            if run.listed != (1 << self.n) - 1 and \
               "missed" not in self.without:
                mem = missed(mem, plan.live)
        elif phase in (HEAD1, HEAD2):
            session = plan.session + ("same-session" not in self.without)
            mem = tuple([write_header(x, session, plan.seq, self.without)
                         if run.alive >> s & 1 else x
                         for s, x in enumerate(mem)])
        else:
            return "recovered", self.recovered(run, plan)
        if mem == run.mem:
            return self.write_phase(run, phase + 1)
        return PHASES[phase], run._replace(mem=mem, rec=(phase, plan))

    def recovered(self, run, plan):
        heads = [newest([p[0] for p in run.mem[s][HDR]])
                 for s in bits(run.alive)]
        run = run._replace(
            rec=None, said=None, txs=(), rot=0, session=max(h[1] for h in heads),
            seq=plan.seq, tail=plan.seq, room=plan.seq,
            values=tuple([(x,) for x in plan.rows]))
        self.check_out(run)
        return run

    # ---- crashes ---------------------------------------------------------------

    def crash(self, run):
        """Every image that a crash leaves."""
        said = run.said
        target = run.target
        if target:
            target = target[:2] + (target[1], None)
        options = [self.images.of(x) if x else [None] for x in run.mem]
        left = (run.left[0], run.left[1] - 1) + run.left[2:]
        after = Run((), run.out, run.listed, run.listed, 0, 0, (), 0, 0,
                    run.values, left, None, said, target, run.rot)
        for mem in product(*options):
            yield after._replace(mem=mem)
        if not left[3]:
            return
        left = left[:3] + (left[3] - 1,)
        for s in bits(run.listed):
            rot = run.rot | 1 << s
            if (run.listed & ~rot).bit_count() < self.k:
                continue
            rotted = options[:s] + [self.images.rotted(run.mem[s])] + \
                options[s + 1:]
            for mem in product(*rotted):
                yield after._replace(mem=mem, left=left, rot=rot, said=None)

    def plan_of(self, mem, found, target):
        target = target and target[:2]
        key = tuple([mem[s] for s in found]), tuple(found), target
        plan = self.plans.get(key)
        if plan is None:
            plan = Opening(self.code, self.rows, mem, found, self.sums,
                           self.without, target).plan()
            self.plans[key] = plan
        return plan

    def opens(self, image):
        """Every set of members that may be there, and the run that goes on
        from it."""
        for mask in range(1, 1 << self.n):
            found = list(bits(mask))
            if mask & ~image.listed or \
               (mask & ~image.rot).bit_count() < self.k:
                continue
            try:
                plan = self.plan_of(image.mem, found,
                                    image.target)
                self.check(image, mask, plan)
            except Broken as e:
                raise Broken("%s opens: %s" % (found, e), image)
            out, mem = list(image.out), list(image.mem)
            for s in bits(image.listed & ~mask):
                out[s] = (None,) * self.rows
                if not image.rot >> s & 1:
                    out[s] = tuple([self.surely(mem[s], row, s)
                                    for row in range(self.rows)])
                mem[s] = None
            run = image._replace(
                mem=tuple(mem), out=tuple(out), listed=mask, alive=mask,
                rot=image.rot & mask, rec=(AGAIN, plan), said=(mask, plan.rows))
            for there, r2 in (("", run), (", no target",
                                          self.drop_target(run))):
                if r2:
                    what, r2 = self.write_phase(r2, AGAIN)
                    yield "open %s%s, %s" % (found, there, what), r2

    def check(self, image, mask, plan):
        for row, data in enumerate(plan.rows):
            if data not in image.values[row]:
                raise Broken("row %d is %s, not one of %s" %
                             (row, data, image.values[row]))
        if image.said and image.said[0] == mask and \
           image.said[1] != plan.rows:
            raise Broken("answered %s before, now %s" %
                         (image.said[1], plan.rows))

    def check_out(self, run):
        """After a recovery a member that is out may lack only what a missed
        bit tells of, and the table is in order."""
        for row in range(self.rows):
            data = run.values[row][0]
            told = all(run.mem[s][MISSED][0][0] >> row & 1
                       for s in bits(run.alive))
            for s in range(self.n):
                if run.out[s] and not told and \
                   run.out[s][row] is not None and \
                   run.out[s][row] != self.code.block(s, data):
                    raise Broken("no missed bit for row %d of %d" % (row, s))
            if self.sums:
                self.check_entries(run, row, data)

    def check_entries(self, run, row, data):
        entries = {}
        for s in bits(run.alive):
            page = newest([p[0] for p in run.mem[s][PAGE]])
            if page is None:
                raise Broken("both places of a page are torn")
            entries[s] = page[1][row]
        for s, entry in entries.items():
            content = self.code.block(s, data)
            if entry == ZERO:
                bad = content != self.code.block(s, self.code.zeroes)
            else:
                bad = entry[0] != content or \
                    run.mem[s][BLOCK][row][0] != content
            if bad:
                raise Broken("row %d of %d is not good" % (row, s))
        parity = {e and e[1] for s, e in entries.items() if s >= self.k}
        if len(parity) > 1:
            raise Broken("parity of two generations in row %d" % row)
        if len(entries) == self.n and data != self.code.zeroes and \
           not any(entries[s] == ZERO or entries[s][1] in parity
                   for s in range(self.k)):
            raise Broken("no data of the generation in row %d" % row)
