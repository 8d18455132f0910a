"""gpuraid: silent faults of member files, by kind.

A Planter damages members at most of the slots that it is given.  It records
which blocks of data, and which pages of the checksum table, it has touched.

SPDX-License-Identifier: BSD-3-Clause
"""

import ctypes
import os

from .disk import BLOCK, newest_place

# What each kind does to a member.
KINDS = {
    'flip': 'up to 8 bits of a block',
    'zero': 'up to 16 blocks become zeroes, or a hole',
    'torn': 'some sectors of a block become garbage or zeroes',
    'swap': 'two blocks change places',
    'stale': 'up to 8 blocks are as they once were',
    'slot': 'a block of another slot',
    'page-1': 'a written page of the checksum table, in one of its places',
    'page-2': 'such a page, in both places',
    'ring': 'up to 64 blocks of the journal, or its headers',
    'bitmap': 'a page of the dirty bitmap, in one place or both',
    'superblock': 'one to three of the four copies',
}
DATA = 'flip', 'zero', 'torn', 'swap', 'stale', 'slot'
PAGES = 'page-1', 'page-2'
META = 'ring', 'bitmap', 'superblock'
ACCEPTED = {1, 3}               # of the superblock copies: A2 and B2
RUN = 16                        # the most blocks that one fault touches


def _punch(fd, off, length):
    keep_size, punch_hole = 1, 2
    return ctypes.CDLL(None).fallocate(
        fd, keep_size | punch_hole, ctypes.c_int64(off),
        ctypes.c_int64(length)) == 0


class Planter:
    """rows: where to look first, so that faults meet.  old[slot]: earlier
    contents of its data.  blocks, pages: what was touched, with the kind.
    outdated: at most may_outdate slots that will be rebuilt at the next
    start, because both copies of the superblock that say that the member has
    accepted the last record are bad.
    """

    def __init__(self, rng, layout, paths, slots, rows, old, may_outdate):
        self.may_outdate = may_outdate
        self.rng, self.layout, self.paths = rng, layout, paths
        self.slots, self.rows, self.old = slots, rows, old
        self.count = {}
        self.blocks = {}        # (slot, block) -> kind
        self.pages = {}         # (slot, page) -> kind
        self.before = {}        # (slot, block) -> bytes, when touched first
        self.copies = {}        # slot -> superblock copies that are bad
        self.spared = {}        # slot -> the one that stays
        self.outdated = set()
        self.said = []

    def plant(self, kind, slot=None):
        if slot is None:
            slot = self.rng.choice(self.slots)
        self.kind = kind
        with open(self.paths[slot], 'r+b', buffering=0) as f:
            self.f, self.slot = f, slot
            getattr(self, '_' + kind.replace('-', '_'))()
        self.count[kind] = self.count.get(kind, 0) + 1

    def spoil(self, slot, block):
        """This block, in some way that leaves no bit pattern as it was."""
        self.kind = 'flip'
        with open(self.paths[slot], 'r+b', buffering=0) as f:
            self.f, self.slot = f, slot
            self._put(block, bytes(x ^ 0x5a for x in self._get(block)))
        self.count['flip'] = self.count.get('flip', 0) + 1

    # -- blocks of data -------------------------------------------------

    def _row(self):
        if self.rows and self.rng.random() < 0.75:
            return self.rng.choice(self.rows)
        return self.rng.randrange(self.layout.nr_blocks)

    def _get(self, block):
        return os.pread(self.f.fileno(), BLOCK,
                        self.layout.data_off + block * BLOCK)

    def _touch(self, block, nr=1):
        for b in range(block, block + nr):
            key = self.slot, b
            self.before.setdefault(key, self._get(b))
            self.blocks[key] = self.kind

    def _put(self, block, data):
        self._touch(block, len(data) // BLOCK)
        os.pwrite(self.f.fileno(), data, self.layout.data_off + block * BLOCK)
        self.said.append('%s: slot %d block %d, %d' % (
            self.kind, self.slot, block, len(data) // BLOCK))

    def _flip(self):
        b = self._row()
        data = bytearray(self._get(b))
        for _ in range(self.rng.randint(1, 8)):
            bit = self.rng.randrange(8 * BLOCK)
            data[bit // 8] ^= 1 << bit % 8
        self._put(b, bytes(data))

    def _zero(self):
        b = self._row()
        nr = min(self.rng.choice((1, 1, 2, RUN)), self.layout.nr_blocks - b)
        self._touch(b, nr)
        if self.rng.random() < 0.5 and _punch(
                self.f.fileno(), self.layout.data_off + b * BLOCK,
                nr * BLOCK):
            self.said.append('hole: slot %d block %d, %d' % (self.slot, b,
                                                             nr))
        else:
            self._put(b, bytes(nr * BLOCK))

    def _torn(self):
        b = self._row()
        data = bytearray(self._get(b))
        at = 512 * self.rng.randint(0, 7)
        n = 512 * self.rng.randint(1, 8 - at // 512)
        data[at:at + n] = self.rng.choice((bytes(n), self.rng.randbytes(n)))
        self._put(b, bytes(data))

    def _swap(self):
        a, b = self._row(), self._row()
        one, two = self._get(a), self._get(b)
        self._put(a, two)
        self._put(b, one)

    def _stale(self):
        old = self.old.get(self.slot)
        if not old:
            return self._flip()
        b = self._row()
        nr = min(self.rng.choice((1, 1, 2, 8)), self.layout.nr_blocks - b)
        self._put(b, old[0][b * BLOCK:(b + nr) * BLOCK])

    def _slot(self):
        other = self.rng.randrange(self.layout.n)
        b = self._row()
        at = self.rng.choice((b, self._row()))
        try:
            with open(self.paths[other], 'rb') as f:
                f.seek(self.layout.data_off + at * BLOCK)
                data = f.read(BLOCK)
        except FileNotFoundError:
            return self._flip()
        self._put(b, data)

    # -- the rest -------------------------------------------------------

    def _write(self, off, data):
        os.pwrite(self.f.fileno(), data, off)
        self.said.append('%s: slot %d at %d, %d bytes' % (
            self.kind, self.slot, off, len(data)))

    def _damaged(self, off):
        """The block there, so that it is no structure any more."""
        r = self.rng
        data = bytearray(os.pread(self.f.fileno(), BLOCK, off))
        how = r.choice(('flip', 'zero', 'garbage', 'torn'))
        if how == 'zero':
            return bytes(BLOCK)
        if how == 'garbage':
            return r.randbytes(BLOCK)
        if how == 'torn':
            n = 512 * r.randint(1, 7)
            data[n:] = r.randbytes(BLOCK - n)
            return bytes(data)
        data[r.randrange(BLOCK)] ^= 1 << r.randrange(8)
        return bytes(data)

    def _page(self, places):
        page = self.rng.randrange(self.layout.nr_pages)
        if self.rows and self.rng.random() < 0.5:
            page = self.rng.choice(self.rows) // 510
        if places == 1:
            newest = newest_place(self.layout, self.slot, page,
                                  self.paths[self.slot])
            which = [newest if self.rng.random() < 0.6 else 1 - newest]
        else:
            which = [0, 1]
        first = self.layout.page_off(page, 0)
        born = (self.slot, page) in self.pages or any(
            os.pread(self.f.fileno(), 2 * BLOCK, first))
        if not born:
            return              # a scrub does not look at it
        for place in which:
            off = self.layout.page_off(page, place)
            old = os.pread(self.f.fileno(), BLOCK, off)
            new = self._damaged(off)
            if new != old:
                self._write(off, new)
                self.pages[self.slot, page] = self.kind

    def _page_1(self):
        self._page(1)

    def _page_2(self):
        self._page(2)

    def _ring(self):
        r, lay = self.rng, self.layout
        nr = lay.ring_len // BLOCK
        how = r.random()
        if how < 0.3:
            blocks = r.sample((0, 1), r.randint(1, 2))
        elif how < 0.6:
            first = r.randrange(2, nr)
            blocks = range(first, min(nr, first + r.choice((1, 4, 64))))
        else:
            blocks = [min(2 + int(r.expovariate(1 / 16)), nr - 1)
                      for _ in range(r.randint(1, 8))]
        for b in blocks:
            off = lay.ring_off + b * BLOCK
            self._write(off, self._damaged(off))

    def _bitmap(self):
        lay = self.layout
        page = self.rng.randrange(lay.bitmap_len // (2 * BLOCK))
        for place in self.rng.sample((0, 1), self.rng.randint(1, 2)):
            off = lay.bitmap_off + (2 * page + place) * BLOCK
            self._write(off, self._damaged(off))

    def _superblock(self):
        lay, done = self.layout, self.copies.setdefault(self.slot, set())
        which = set(self.rng.sample(range(4), self.rng.randint(1, 3))) - {
            self.spared.setdefault(self.slot, self.rng.randrange(4))}
        if ACCEPTED <= done | which and self.slot not in self.outdated:
            if len(self.outdated) < self.may_outdate:
                self.outdated.add(self.slot)
            else:
                which -= ACCEPTED
        done |= which
        offs = lay.copies(os.fstat(self.f.fileno()).st_size)
        for off in sorted(offs[i] for i in which):
            self._write(off, self._damaged(off))
