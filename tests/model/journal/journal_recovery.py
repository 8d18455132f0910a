# gpuraid: the recovery of the journal, as a model: what the records and
# the blocks in place say of every row, and what is written then.  The steps
# are those of "Recovery" in docs/rules.md.
# journal.py tries all of it.
#
# SPDX-License-Identifier: BSD-3-Clause

from collections import namedtuple

from journal_disk import (BLOCK, Broken, HDR, MISSED, PAGE, RING, TORN, ZERO,
                          change, newest, older_place, put,
                          torn_record)

# What an opening decided.  rows: the data of each row.  relog: (member,
# record, what a crash may leave of it, direct blocks).  place: (member,
# blocks, entries) to be written in place.  live: a mask of the rows that
# live records name.  seq: the next one.
Plan = namedtuple("Plan", "rows relog place live seq session")


class Code:
    """k blocks of data and m of parity."""

    def __init__(self, k, m):
        self.k, self.m, self.n = k, m, k + m
        self.parity = ((1 << self.n) - 1) & ~((1 << k) - 1)
        self.zeroes = (0,) * k

    def block(self, slot, data):
        return data[slot] if slot < self.k else data

    def row(self, good):
        """The data that blocks {slot: content} stand for, or None."""
        if len(good) < self.k:
            return None
        if TORN in good.values():
            raise Broken("a torn block counts")
        data = None
        for slot, content in good.items():
            if slot >= self.k:
                data = data or content
                if data != content:
                    raise Broken("parity of two versions counts")
        if data is None:
            return tuple([good[i] for i in range(self.k)])
        for slot, content in good.items():
            if slot < self.k and data[slot] != content:
                raise Broken("data and parity of two versions count")
        return data


class Ring:
    """What counts of one member's records."""

    def __init__(self, member, tail, without):
        self.records = {}
        self.seen = 0
        head = newest([p[0] for p in member[HDR]])
        if head and "tail" in without:
            tail = head[2]
        for (rec,) in member[RING]:
            if rec is None:
                continue
            if "seq" not in without:
                self.seen = max(self.seen, rec[1])
            if head is None:
                continue
            if rec[0] != head[1] and "session" not in without:
                continue
            if rec[1] >= tail:
                self.records[rec[1]] = rec

    def entry(self, seq, row):
        for e in self.records[seq][2] if seq in self.records else ():
            if e[0] == row:
                return e
        return None


class Opening:
    """The members that a set of slots holds, and what they say."""

    def __init__(self, code, nr_rows, mem, found, sums, without,
                 target=None):
        self.code, self.mem, self.found = code, mem, found
        self.target = target
        self.nr_rows, self.sums, self.without = nr_rows, sums, without
        heads = [h for h in (newest([p[0] for p in mem[s][HDR]])
                             for s in found) if h]
        if not heads:
            raise Broken("no ring header is good")
        self.tail = max(h[2] for h in heads)
        self.session = max(h[1] for h in heads)
        self.rings = {s: Ring(mem[s], self.tail, without) for s in found}
        # seq: row: the roles that change there
        self.live = {}
        self.kinds = {}
        for ring in self.rings.values():
            for seq, rec in ring.records.items():
                rows = self.live.setdefault(seq, {})
                for row, roles, kind, content in rec[2]:
                    rows[row] = roles
                    self.kinds.setdefault((seq, row), set()).add(kind)
        self.newest = max(self.live, default=0)
        for seq in range(self.tail, self.newest):
            if seq not in self.live and "tail" not in without:
                raise Broken("a hole in seq")
        if sums:
            self.tables = {s: self.table(s) for s in found}

    # ---- what lies in place ----------------------------------------------

    def table(self, slot):
        """The entries of a member, None for those that are not known."""
        places = [p[0] for p in self.mem[slot][PAGE]]
        page = newest(places)
        if page is None:
            return (None,) * self.nr_rows
        if None in places and not self.explained(slot, page):
            return (None,) * self.nr_rows
        return page[1]

    def explained(self, slot, page):
        """Was the other place torn when a live transaction wrote it?  Then
        the good one has all that is freed."""
        if "one-place" in self.without:
            return False
        if "page-seq" in self.without:
            return any(roles >> slot & 1 for rows in self.live.values()
                       for roles in rows.values())
        own = self.rings[slot].records
        return bool(own) and page[2] >= own[min(own)][4]

    def in_place(self, slot, row):
        """Content, or None for an erasure."""
        content = self.mem[slot][BLOCK][row][0]
        if not self.sums:
            return content
        entry = self.tables[slot][row]
        if entry is None:
            return None
        if entry == ZERO:
            if "zeroes" in self.without:
                return content
            return self.code.block(slot, self.code.zeroes)
        return content if content == entry[0] else None

    # ---- step 3 ------------------------------------------------------------

    def newest_of(self, slot, row, seqs):
        of = [t for t in seqs if self.live[t].get(row, 0) >> slot & 1]
        if not of:
            return None
        return min(of) if "newest" in self.without else max(of)

    def data(self, row, seqs):
        """(data, {slot: content}) of a row, by these transactions."""
        good = {}
        for slot in self.found:
            seq = self.newest_of(slot, row, seqs)
            if seq is None:
                content = self.in_place(slot, row)
            else:
                content = self.by_record(slot, row, seq)
            if content is not None:
                good[slot] = content
        return self.code.row(good), good

    def by_record(self, slot, row, seq):
        entry = self.rings[slot].entry(seq, row)
        if entry is None and self.zeroes_row(seq, row):
            return self.code.block(slot, self.code.zeroes)
        if entry is None:
            if "erasure" in self.without:
                return self.in_place(slot, row)
            return None
        kind, content = entry[2:]
        if kind == "z":
            return self.code.block(slot, self.code.zeroes)
        if kind == "d":
            there = self.mem[slot][BLOCK][row][0]
            return content if there == content else None
        whole = self.rings[slot].records[seq][3] >> row & 1
        return content if whole else None

    def zeroes_row(self, seq, row):
        """The newest, all slots of it: any one record says it."""
        return "zero-row" not in self.without and seq == self.newest and \
            self.kinds[seq, row] == {"z"} and \
            self.live[seq][row] == (1 << self.code.n) - 1

    # ---- step 4 ------------------------------------------------------------

    def decide(self):
        """[(data, live transactions that stay, good slots)] by row."""
        out = []
        for row in range(self.nr_rows):
            seqs = [t for t in sorted(self.live) if row in self.live[t]]
            data, good = self.data(row, seqs)
            if data is None and self.newest in seqs and \
               "drop" not in self.without:
                seqs.remove(self.newest)
                data, good = self.data(row, seqs)
            if data is None:
                raise Broken("row %d is lost" % row)
            out.append((data, seqs, good))
        return out

    # ---- steps 5 and 6, as what is to be written ---------------------------

    def plan(self):
        rows = self.decide()
        last = max([self.tail - 1] + list(self.live))
        if "seq" in self.without:
            last = max([self.tail - 1] + [t for r in rows for t in r[1]])
        else:
            last = max([last] + [r.seen for r in self.rings.values()])
        live = sum(1 << row for row in range(self.nr_rows)
                   if any(row in t for t in self.live.values()))
        relog, place = [], []
        for slot in self.found:
            again = self.again(slot, rows)
            if again:
                relog.append(again)
            there = self.there(slot, rows)
            if there:
                place.append(there)
        if self.target:
            place.append(self.on_target(rows))
        return Plan(tuple([r[0] for r in rows]), tuple(relog), tuple(place),
                    live, last + 1, self.session)

    def again(self, slot, rows):
        """Step 5 on one member: (slot, record, what a crash may leave of
        it, direct blocks), or None."""
        seq = self.newest
        kept = [row for row, (data, seqs, good) in enumerate(rows)
                if seq in seqs and self.live[seq][row] >> slot & 1]
        if not kept or "relog" in self.without:
            return None
        old = self.rings[slot].records.get(seq)
        blocks = [(row, self.code.block(slot, rows[row][0])) for row in kept
                  if "d" in self.kinds[seq, row] and slot not in rows[row][2]]
        if old is None:
            rec = (self.session, seq, tuple(
                [self.entry_again(slot, row, rows[row][0], seq)
                 for row in kept]), (1 << self.nr_rows) - 1,
                self.before(slot))
            return slot, rec, tuple(torn_record(rec)), tuple(blocks)
        bad = [row for row in kept if slot not in rows[row][2] and
               (row, self.code.block(slot, rows[row][0])) not in blocks]
        if not bad:
            return (slot, None, (), tuple(blocks)) if blocks else None
        torn, good = [], old[3]
        for row in bad:
            torn += [old[:3] + (good, old[4])]
            good |= 1 << row
        if len(bad) > 1:
            torn += [old[:3] + (old[3] | 1 << bad[1], old[4])]
        return slot, old[:3] + (good, old[4]), tuple(torn), tuple(blocks)

    def before(self, slot):
        page = newest([p[0] for p in self.mem[slot][PAGE]])
        return max([page[2] if page else 0] +
                   list(self.rings[slot].records))

    def entry_again(self, slot, row, data, seq):
        kinds = self.kinds[seq, row]
        kind = "p"
        if "d" in kinds:
            kind = "d"
        elif "z" in kinds and data == self.code.zeroes:
            kind = "z"
        return row, self.live[seq][row], kind, self.code.block(slot, data)

    def there(self, slot, rows):
        """Step 6 on one member: (slot, blocks, entries), or None."""
        blocks, entries = [], []
        for row, (data, seqs, good) in enumerate(rows):
            of = [t for t in seqs if self.live[t][row] >> slot & 1]
            if not of and slot in good:
                continue
            content = self.code.block(slot, data)
            if of:
                kind = self.kind_of(slot, row, data, max(of))
                entry = ZERO if kind == "z" else (content, max(of))
                if kind == "d" and slot not in good and \
                   max(of) != self.newest:
                    kind = "p"
            else:
                entry = self.old_entry(slot, row, content, seqs)
                kind = "p" if entry else "z"
            if kind == "p":
                blocks.append((row, content))
            entries.append((row, entry))
        # a page with a bad place is made anew
        if not entries and (
                not self.sums or "page-anew" in self.without or
                None not in [p[0] for p in self.mem[slot][PAGE]]):
            return None
        return slot, tuple(blocks), tuple(entries)

    def on_target(self, rows):
        """The same on a rebuild's target, below its cursor.  No block of it
        counts, so direct ones are written too."""
        slot, cursor = self.target
        blocks, entries = [], []
        for row, (data, seqs, good) in enumerate(rows[:cursor]):
            of = [t for t in seqs if self.live[t][row] >> slot & 1]
            if not of:
                continue
            content = self.code.block(slot, data)
            kind = self.entry_again(slot, row, data, max(of))[2]
            if kind != "z" and not (kind == "d" and
                                    "target-direct" in self.without):
                blocks.append((row, content))
            entries.append((row, ZERO if kind == "z" else
                            (content, max(of))))
        return slot, tuple(blocks), tuple(entries)

    def kind_of(self, slot, row, data, seq):
        entry = self.rings[slot].entry(seq, row)
        if entry:
            return entry[2]
        return self.entry_again(slot, row, data, seq)[2]

    def old_entry(self, slot, row, content, seqs):
        """The entry of an erased block that no live transaction changes."""
        if not self.sums:
            return content, 1
        parity = [s for s in self.found if s >= self.code.k and s != slot]
        own = self.tables[slot][row]
        if own is not None:
            zero = content == self.code.block(slot, self.code.zeroes)
            if zero if own == ZERO else own[0] == content:
                return own
        for s in parity + self.found:
            of = [t for t in seqs if self.live[t][row] >> s & 1]
            if of:
                return content, max(of)
            if s != slot and self.tables[s][row]:
                return content, self.tables[s][row][1]
        return ZERO


# ---- carrying it out ---------------------------------------------------------

def write_page(member, entries, seq, without=()):
    """The table page with new entries, or None while its turn is not."""
    pages = member[PAGE]
    nr = older_place(pages)
    page = newest([p[0] for p in pages])
    new = list(page[1]) if page else None
    if new is None:
        new = [ZERO] * (1 + max(row for row, entry in entries))
    for row, entry in entries:
        new[row] = entry
    if page and tuple(new) == page[1] and seq <= page[2] and \
       None not in (pages[0][0], pages[1][0]):
        return member
    if len(pages[1 - nr]) > 1 and "turn" not in without:
        return None
    counter = page[0] + 1 if page else 1
    seq = max(seq, page[2] if page else 0)
    return change(member, PAGE, nr,
                  put(pages[nr], (counter, tuple(new), seq), (None,)))


def write_header(member, session, tail, without=()):
    hdrs = member[HDR]
    nr = older_place(hdrs)
    if len(hdrs[1 - nr]) > 1 and "turn" not in without:
        return None
    head = newest([p[0] for p in hdrs])
    return change(member, HDR, nr, put(
        hdrs[nr], ((head[0] if head else 0) + 1, session, tail), (None,)))


def write_record(member, rec, torn):
    nr = rec[1] % len(member[RING])
    return change(member, RING, nr, put(member[RING][nr], rec, torn))


def write_block(member, row, content):
    return change(member, BLOCK, row,
                  put(member[BLOCK][row], content, (TORN,)))


def write_missed(member, rows):
    old = member[MISSED][0]
    if old[0] & rows == rows:
        return member
    return change(member, MISSED, 0, put(old, old[0] | rows))


def relog(mem, plan):
    mem = list(mem)
    for slot, rec, torn, blocks in plan.relog:
        if mem[slot] is None:
            continue
        if rec:
            mem[slot] = write_record(mem[slot], rec, torn)
        for row, content in blocks:
            mem[slot] = write_block(mem[slot], row, content)
    return tuple(mem)


def in_place(mem, plan, sums, without):
    """Blocks, pages and nothing else of step 6."""
    mem = list(mem)
    for slot, blocks, entries in plan.place:
        if mem[slot] is None:
            continue
        for row, content in blocks:
            mem[slot] = write_block(mem[slot], row, content)
        if not sums:
            continue
        bad = [p[0] for p in mem[slot][PAGE]].count(None)
        if entries or bad:
            seq = max([0] + [e[1] for row, e in entries if e])
            mem[slot] = write_page(mem[slot], entries, seq, without)
        if bad == 2 and "page-both" not in without:
            # else it has one good place, and no record will explain it
            page = mem[slot][PAGE][0][0]
            mem[slot] = change(mem[slot], PAGE, 1, put(
                mem[slot][PAGE][1], (0,) + page[1:], (None,)))
    return tuple(mem)


def missed(mem, rows):
    return tuple([x and write_missed(x, rows) for x in mem])
