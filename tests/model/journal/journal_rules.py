# gpuraid: the rules of the journal (docs/rules.md), as a model: the
# transactions.
# journal_sessions.py has what else can happen, journal_disk.py what members
# hold, journal_recovery.py what an opening makes of it.  journal.py tries
# all of it.
#
# A step is of all members at once: between a write to one and a write to
# the next a crash leaves nothing that it can not leave after both, since
# neither is flushed.  For the same reason a flush of all participants is
# one step, and so are the blocks in place and the table pages.
#
# SPDX-License-Identifier: BSD-3-Clause

from collections import namedtuple
from itertools import product

from journal_disk import (BLOCK, HDR, Images, MISSED, PAGE, ZERO, bits,
                          flushed, is_flushed, newest, torn_record,
                          unwritten)
from journal_recovery import (Code, write_block, write_header, write_missed,
                              write_page, write_record)

RULES = {
    "R1": "in place before the records are flushed",
    "R2": "acknowledged before the flush",
    "R3": "freed before its blocks and pages are flushed",
    "R3-order": "in place in any order",
    "R4": "ring space is used again before the header is flushed",
    "R5": "the next records go out before the last ones are flushed",
    "R5-cache": "parity is made from what lies in place",
    "R6": "goes on without a failed member before the record is in force",
    "R7": "after a flush error only the flush is done again",
    "R8": "a full journal is passed by",
    "R9": "after a reconnect nothing is written again",
    "R10": "a member becomes active while a transaction is under way",
    "R10-headers": "a member becomes active with its old ring headers",
    "R10-copy": "a row is copied while a transaction changes it",
    "R11": "direct blocks go in place after R1",
    "R12-free": "direct into a row that an unfreed transaction touches",
    "R12-stable": "direct where {0, 0} is not on stable storage",
    "R12-parity": "direct where the data entries alone are {0, 0}",
    "R13": "a trim of a whole row leaves its parity alone",
    "R14": "a table page holds entries of what has not met R1",
    "R15": "a row is copied before its table pages went out",
    "R5-withdraw": "after a withdrawal the next transaction does not zero its"
                   " rows",
    "R5-first": "another transaction goes before the one that zeroes them",
    "withdraw-flush": "rows are withdrawn before the records are flushed",
    "zero-row": "a slot without a record of a zeroed row is an erasure",
    "turn": "both places of a header or page are in flight together",
    "one-place": "a page with one torn place is never trusted",
    "newest": "the oldest record of a slot counts",
    "erasure": "a slot whose record is missing counts with its block",
    "drop": "the newest transaction is never dropped",
    "tail": "every ring has its own tail",
    "zeroes": "{0, 0} counts as what lies in place",
    "relog": "recovery goes in place without writing records again",
    "relog-flush": "recovery goes in place before those are flushed",
    "place-flush": "fresh headers before what is in place is flushed",
    "missed": "recovery leaves the missed bits alone",
    "missed-write": "a degraded write sets no missed bit",
    "missed-leave": "a member that leaves sets no missed bit",
    "missed-late": "missed bits need not be durable before a header frees",
    "torn-return": "a member returns, and of a page with a torn place only"
                   " the rows of missed bits are copied",
    "page-seq": "any live record of a page explains that one place of it is"
                " bad (with --rot)",
    "page-anew": "recovery leaves a page with one bad place as it is (with"
                 " --rot)",
    "page-both": "a page with two bad places is made anew in one (with --rot)",
    "target-write": "a target is not written below its cursor",
    "target-wait": "a transaction is freed before the target is flushed",
    "target-cursor": "the cursor moves before the target is flushed",
    "target-direct": "recovery writes no direct block to a target",
    "session": "a record of any session counts",
    "seq": "recovery goes on above what it kept",
    "same-session": "recovery draws no new session",
}

# A transaction.  rows: (row, roles, kinds by slot, data).  parts: its
# participants; wait: those that were not flushed since it went in place.
# Kind "w": a direct block that was withdrawn.
Tx = namedtuple("Tx", "seq phase rows parts wait")
BEGUN, WRITTEN, MET, PLACED, DONE = range(5)

# Everything.  out: what members that are out of the record surely hold,
# by row.  listed: the record in force; alive: those that are written.
# tail: what the last headers free; room: what the durable ones do.
# values: by row what may be read, the last acknowledged first.  left:
# transactions, crashes, members to be rebuilt and blocks to rot that are
# to come.  rec: None, or the phase of a recovery and its plan.  said: what
# an opening answered, and of which members.  target: None, or (slot,
# cursor, rows that are copied, what was read of the next row).  rot: a
# mask of the members that have a rotted block, as good as lost.
Run = namedtuple("Run", "mem out listed alive session seq txs tail room "
                 "values left rec said target rot")


class Transactions:
    def __init__(self, k, m, rows, txs, crashes=1, ring=2, kinds="wdt",
                 sums=True, joins=0, rot=0, narrow=False, without=()):
        self.code = Code(k, m)
        self.k, self.m, self.n = k, m, k + m
        self.rows, self.ring, self.sums = rows, ring, sums
        self.without = frozenset(without)
        self.nr_txs, self.crashes = txs, crashes
        self.joins, self.rot = joins, rot
        self.images = Images(sums, bool(rot), self.without)
        self.kinds = kinds if sums else "w"
        self.narrow = narrow
        self.choices = list(self.all_choices())
        self.plans = {}

    def start(self):
        entries = (ZERO,) * self.rows
        member = (((1, 1, 1),), ((0, 1, 1),)), ((None,),) * self.ring, \
            (((1, entries, 0),), ((0, entries, 0),)), ((0,),) * self.rows, ((0,),)
        # without checksums creation makes all read as zeroes
        mem = []
        for s in range(self.n):
            zero = self.code.block(s, self.code.zeroes)
            mem.append(member[:3] + (((zero,),) * self.rows,) + member[4:])
        full = (1 << self.n) - 1
        return Run(tuple(mem), (None,) * self.n, full, full, 1, 1, (), 1, 1,
                   ((self.code.zeroes,),) * self.rows,
                   (self.nr_txs, self.crashes, self.joins, self.rot),
                   None, None, None, 0)

    # ---- which transactions there are --------------------------------------

    def row_choices(self):
        """(kind, data roles) in one row; kind x is a trim of the first
        role and a write to the others."""
        full = (1 << self.k) - 1
        masks = list(range(1, full + 1))
        for kind in self.kinds:
            if kind == "d" and self.k > 1:
                yield kind, 1       # the others are zeroes
            if kind in "dx":
                yield kind, full
                continue
            for mask in masks:
                yield kind, mask

    def all_choices(self):
        one = [c for c in self.row_choices() if c[0] != "x" or self.k > 1]
        if self.narrow:
            one = [c for c in one if c[1].bit_count() == 1]
        for row in range(self.rows):
            for c in one:
                yield ((row,) + c,)
        full = (1 << self.k) - 1
        both = [c for c in one if c[1] == full]
        if self.rows > 1 and not self.narrow:
            for a, b in product(both, both):
                yield (0,) + a, (1,) + b

    def make_row(self, run, choice, value):
        """(row, roles, kinds, data) of a choice, or None if it may not
        be."""
        row, kind, mask = choice
        code = self.code
        base = run.values[row][-1]
        if "R5-cache" in self.without:
            base = self.from_place(run, row, base)
        data = list(base)
        for d in bits(mask):
            trim = kind == "t" or kind == "x" and d == 0
            data[d] = 0 if trim else value
        data = tuple(data)
        if kind == "t" and data == base and mask != (1 << self.k) - 1:
            return None
        roles = mask | code.parity
        kinds = []
        for s in range(self.n):
            if not roles >> s & 1:
                kinds.append("")
            elif s >= self.k:
                zero = kind == "t" and mask == (1 << self.k) - 1
                kinds.append("z" if zero else "d" if kind == "d" else "p")
            elif kind == "x":
                kinds.append("z" if s == 0 else "p")
            else:
                kinds.append({"w": "p", "t": "z", "d": "d"}[kind])
        if "R13" in self.without and kind == "t" and \
           mask == (1 << self.k) - 1:
            roles = mask
        if not roles & run.alive:
            return None
        if kind == "d" and not self.may_be_direct(run, row):
            return None
        return row, roles, tuple(kinds), data

    def from_place(self, run, row, base):
        data = list(base)
        for s in bits(run.alive & ~self.code.parity):
            entry = newest([p[0] for p in run.mem[s][PAGE]])[1][row]
            data[s] = run.mem[s][BLOCK][row][0] if entry else 0
        return tuple(data)

    def may_be_direct(self, run, row):
        """R12."""
        trimmed = False
        for tx in run.txs if "R12-free" not in self.without else ():
            for r in tx.rows if tx.phase != DONE else ():
                if r[0] == row and "R12-stable" in self.without and \
                   tx.phase >= WRITTEN and "z" in r[2][self.k:]:
                    trimmed = True
                elif r[0] == row:
                    return False
        if trimmed:
            return True
        for s in bits(run.alive):
            if "R12-parity" in self.without and s >= self.k:
                continue
            pages = run.mem[s][PAGE]
            if newest([p[0] for p in pages])[1][row] != ZERO:
                return False
            if "R12-stable" not in self.without and \
               not is_flushed(run.mem[s], PAGE):
                return False
        return True

    # ---- steps of a transaction ----------------------------------------------

    def begins(self, run):
        if run.txs and run.txs[-1].phase == BEGUN:
            return
        if self.withdrawn(run):
            yield from self.zero_withdrawn(run)
            if "R5-first" not in self.without:
                return
        if not run.left[0]:
            return
        value = self.nr_txs - run.left[0] + 1
        for choice in self.choices:
            rows = [self.make_row(run, c, value) for c in choice]
            if None in rows:
                continue
            roles = 0
            for row in rows:
                roles |= row[1]
            tx = Tx(run.seq, BEGUN, tuple(rows), roles & run.alive, 0)
            values = list(run.values)
            for row in rows:
                values[row[0]] += (row[3],)
            r2 = run._replace(seq=run.seq + 1, txs=run.txs + (tx,),
                              values=tuple(values),
                              left=(run.left[0] - 1,) + run.left[1:])
            label = "begin " + self.tell_tx(tx)
            if any("d" in row[2] for row in rows):
                if "R11" not in self.without:
                    r2 = r2._replace(mem=self.write_blocks(r2, tx, "d"))
                yield label, r2
                continue
            for more, r3 in self.records(r2):
                yield label + ", " + more, r3

    # ---- a transaction without space for its direct blocks --------------------

    def withdraws(self, run):
        """Its records are written, but on some members there is no space for
        its direct blocks.  All else of it counts."""
        tx = run.txs[-1] if run.txs else None
        if not tx or tx.phase != WRITTEN or \
           not any("d" in row[2] for row in tx.rows):
            return
        for got in range(1 << self.n):
            if got & ~tx.parts or got == tx.parts:
                continue
            mem = list(run.mem)
            for row, roles, kinds, data in tx.rows:
                for s in bits(tx.parts & ~got):
                    if kinds[s] == "d":
                        mem[s] = unwritten(mem[s], row)
            rows = tuple([(row, roles, tuple(
                ["w" if x == "d" else x for x in kinds]), data)
                for row, roles, kinds, data in tx.rows])
            r2 = run._replace(mem=tuple(mem), txs=run.txs[:-1] +
                              (tx._replace(rows=rows, phase=MET),))
            if "withdraw-flush" not in self.without:
                r2 = self.flush(r2, tx.parts)
            yield "withdraw %d but on %s" % (tx.seq, list(bits(got))), \
                self.acknowledge(r2, r2.txs[-1])

    def withdrawn(self, run):
        """The rows that the next transaction zeroes."""
        tx = run.txs[-1] if run.txs else None
        if not tx or "R5-withdraw" in self.without:
            return []
        return [row[0] for row in tx.rows if "w" in row[2]]

    def zero_withdrawn(self, run):
        full = (1 << self.n) - 1
        rows = tuple([(row, full, ("z",) * self.n, self.code.zeroes)
                      for row in self.withdrawn(run)])
        values = list(run.values)
        for row in rows:
            values[row[0]] += (self.code.zeroes,)
        tx = Tx(run.seq, BEGUN, rows, run.alive, 0)
        r2 = run._replace(seq=run.seq + 1, txs=run.txs + (tx,),
                          values=tuple(values))
        for more, r3 in self.records(r2):
            yield "zero what was withdrawn: %d, %s" % (tx.seq, more), r3

    def tell_tx(self, tx):
        names = {"p": "write", "z": "trim", "d": "direct", "": "-"}
        return "%d: " % tx.seq + "; ".join(
            "row %d %s" % (row, " ".join(names[x] for x in kinds))
            for row, roles, kinds, data in tx.rows)

    def takers(self, run, tx, row, roles):
        """The members that are written in place: participants, and a target
        below its cursor."""
        out = list(bits(tx.parts & roles))
        if run.target and "target-write" not in self.without and \
           row < run.target[2] and roles >> run.target[0] & 1:
            out.append(run.target[0])
        return out

    def write_blocks(self, run, tx, kind):
        mem = list(run.mem)
        for row, roles, kinds, data in tx.rows:
            for s in self.takers(run, tx, row, roles):
                if kinds[s] == kind:
                    mem[s] = write_block(mem[s], row,
                                         self.code.block(s, data))
        return tuple(mem)

    def records(self, run):
        """The records of the last transaction go out."""
        tx = run.txs[-1]
        if tx.phase != BEGUN:
            return
        if len(run.txs) > 1 and run.txs[-2].phase < MET and \
           "R5" not in self.without:
            return
        room = run.tail if "R4" in self.without else run.room
        if tx.seq - self.ring >= room:
            if "R8" in self.without:
                yield "passed by", self.passed_by(run, tx)
            return
        mem = list(run.mem)
        rows = 0
        for row, roles, kinds, data in tx.rows:
            rows |= 1 << row
        for s in bits(tx.parts):
            entries = tuple(
                [(row, roles, kinds[s], self.code.block(s, data))
                 for row, roles, kinds, data in tx.rows if roles >> s & 1])
            before = max([newest([p[0] for p in mem[s][PAGE]])[2]] +
                         [t.seq for t in run.txs[:-1] if t.parts >> s & 1 and
                          any(r[2][s] not in ("", "w") for r in t.rows)])
            rec = run.session, tx.seq, entries, (1 << self.rows) - 1, before
            mem[s] = write_record(mem[s], rec, torn_record(rec))
        if run.listed != (1 << self.n) - 1 and \
           "missed-write" not in self.without:
            for s in bits(run.alive):
                mem[s] = write_missed(mem[s], rows)
        run = run._replace(mem=tuple(mem), txs=run.txs[:-1] +
                           (tx._replace(phase=WRITTEN),))
        if "R2" in self.without:
            run = self.acknowledge(run, tx)
        yield "records", run

    def acknowledge(self, run, tx):
        values = list(run.values)
        for row, roles, kinds, data in tx.rows:
            if data in values[row] and "w" not in kinds:
                last = len(values[row]) - 1 - values[row][::-1].index(data)
                values[row] = values[row][last:]
        return run._replace(values=tuple(values))

    def passed_by(self, run, tx):
        run = run._replace(txs=run.txs[:-1] + (tx._replace(phase=MET),))
        run = self.acknowledge(run, tx)
        return self.placed(run, len(run.txs) - 1, False) or run

    def missed_flushed(self, run):
        return all(is_flushed(run.mem[s], MISSED) for s in bits(run.alive))

    def flush(self, run, mask):
        """What members hold is stable, and what follows from it."""
        if not self.missed_flushed(run):
            mask = run.alive
        mem = list(run.mem)
        for s in bits(mask):
            mem[s] = flushed(mem[s])
        txs = []
        for tx in run.txs:
            if tx.phase == PLACED:
                wait = tx.wait & ~mask
                tx = tx._replace(wait=wait, phase=PLACED if wait else DONE)
            txs.append(tx)
        run = run._replace(mem=tuple(mem), txs=tuple(txs))
        if all(is_flushed(mem[s], HDR) for s in bits(run.alive)):
            run = run._replace(room=run.tail)
        return run

    def meet(self, run, nr):
        """R1 is met, and the write acknowledged."""
        tx = run.txs[nr]
        run = self.flush(run, tx.parts)
        run = self.acknowledge(run, tx)
        tx = tx._replace(phase=max(tx.phase, MET))
        return run._replace(txs=run.txs[:nr] + (tx,) + run.txs[nr + 1:])

    def placed(self, run, nr, ahead):
        """In place, and table pages, which may have the entries of later
        transactions too."""
        tx = run.txs[nr]
        mem = list(self.write_blocks(run, tx, "p"))
        if "R11" in self.without:
            mem = list(self.write_blocks(run._replace(mem=tuple(mem)), tx,
                                         "d"))
        wait = tx.parts
        if run.target and any(run.target[0] in self.takers(run, tx, r[0], r[1])
                              for r in tx.rows):
            wait |= 1 << run.target[0]
        for s in bits(wait) if self.sums else ():
            entries, last = [], 0
            for t in run.txs[nr:] if ahead else (tx,):
                if t.phase not in (MET, WRITTEN, BEGUN) or \
                   t.phase != MET and "R14" not in self.without and t != tx:
                    continue
                for row, roles, kinds, data in t.rows:
                    if kinds[s] == "w":
                        continue
                    if s in self.takers(run, t, row, roles):
                        entries.append((row, ZERO if kinds[s] == "z" else
                                        (self.code.block(s, data), t.seq)))
                        last = t.seq
            mem[s] = write_page(mem[s], entries, last, self.without)
            if mem[s] is None:
                return None
        if "target-wait" in self.without:
            wait = tx.parts
        tx = tx._replace(phase=PLACED, wait=wait)
        if "R3" in self.without:
            tx = tx._replace(phase=DONE, wait=0)
        return run._replace(mem=tuple(mem), txs=run.txs[:nr] + (tx,) +
                            run.txs[nr + 1:])

    def in_order(self, run, nr):
        """R3: all earlier ones to the same blocks are in place.  Where rot is
        to be told from a tear, those to the same pages too."""
        rows = {r[0] for r in run.txs[nr].rows}
        return "R3-order" in self.without or not any(
            t.phase < PLACED and (self.rot or r[0] in rows)
            for t in run.txs[:nr] for r in t.rows)

    def free(self, run):
        """A header says what is freed."""
        txs = run.txs
        while txs and txs[0].phase == DONE and \
                not (len(txs) == 1 and self.withdrawn(run)):
            txs = txs[1:]
        tail = txs[0].seq if txs else run.seq
        if tail == run.tail or not self.missed_flushed(run) and \
           "missed-late" not in self.without:
            return
        mem = list(run.mem)
        for s in bits(run.alive):
            mem[s] = write_header(mem[s], run.session, tail, self.without)
            if mem[s] is None:
                return
        yield "header %d" % tail, run._replace(mem=tuple(mem), txs=txs,
                                               tail=tail)
