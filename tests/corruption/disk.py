"""gpuraid: members with checksums, read from outside.

Written from docs/on-disk-format.md alone.  Says what lies where, what the
checksum table of a stopped array says, and whether all of it is as it must
be for known content.

SPDX-License-Identifier: BSD-3-Clause
"""

import ctypes
import struct

from lab import gf

BLOCK = 4096
ENTRIES = 510
ZERO = bytes(BLOCK)
LOST = 1, 0
COPIES = 'A1', 'A2', 'B1', 'B2'

_isal = ctypes.CDLL('libisal.so.2')
_isal.crc32_iscsi.restype = ctypes.c_uint32
_isal.crc32_iscsi.argtypes = ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32


def crc32c(data):
    return _isal.crc32_iscsi(data, len(data), 0xffffffff) ^ 0xffffffff


assert crc32c(b'123456789') == 0xe3069283


class Layout:
    """From a superblock; the same for all members."""

    def __init__(self, path):
        with open(path, 'rb') as f:
            sb = f.read(BLOCK)
        assert sb[:8] == b'GPURAIDS'
        self.uuid = sb[40:56]
        self.k, self.m = sb[192], sb[193]
        self.chunk, self.size = struct.unpack_from('<IQ', sb, 196)
        (self.ring_off, self.ring_len, self.table_off, self.table_len,
         self.bitmap_off, self.bitmap_len, self.data_off,
         self.data_len) = struct.unpack_from('<8Q', sb, 224)
        self.n = self.k + self.m
        self.nr_blocks = self.data_len // BLOCK
        self.nr_pages = self.table_len // (2 * BLOCK)
        self.per_chunk = self.chunk // BLOCK

    def role(self, slot, block):
        """Of this slot in the row; from k on it is parity."""
        return (slot - self.m + 1 + block // self.per_chunk) % self.n

    def slot(self, role, block):
        return gf.slot_of(self.k, self.m, block // self.per_chunk, role)

    def address(self, role, block):
        """In the array, of a data role's block."""
        stripe, row = divmod(block, self.per_chunk)
        return (stripe * self.k + role) * self.chunk + row * BLOCK

    def row_of(self, address):
        """Row and role of an address in the array."""
        c, off = divmod(address, self.chunk)
        return c // self.k * self.per_chunk + off // BLOCK, c % self.k

    def page_off(self, page, place):
        return self.table_off + (2 * page + place) * BLOCK

    def copies(self, length):
        """Where the superblock copies of a member of this length are."""
        last = length // BLOCK * BLOCK
        return [0, BLOCK, last - 2 * BLOCK, last - BLOCK]

    def sum(self, slot, block, data):
        return crc32c(data) ^ crc32c(self.uuid
                                     + struct.pack('<IQ', slot, block))

    def decode_page(self, slot, page, place, data):
        """None, or its counter and entries."""
        crc, no, counter = struct.unpack_from('<IIQ', data)
        if crc != crc32c(bytes(4) + data[4:] + self.uuid
                         + struct.pack('<I', slot)):
            return None
        if no != page or counter & 1 != place:
            return None
        words = struct.unpack_from('<%dI' % (2 * ENTRIES), data, 16)
        return counter, list(zip(words[::2], words[1::2]))


class Image:
    """The data and the table of one member."""

    def __init__(self, layout, slot, path):
        lay = self.layout = layout
        self.slot = slot
        with open(path, 'rb') as f:
            f.seek(lay.data_off)
            self.data = f.read(lay.data_len)
            f.seek(lay.table_off)
            self.table = f.read(lay.table_len)
        self.entry = []
        self.born = []          # by page
        self.wrong = []
        for page in range(lay.nr_pages):
            self._take(page)
        del self.entry[lay.nr_blocks:]

    def _take(self, page):
        raw = [self.table[(2 * page + p) * BLOCK:(2 * page + p + 1) * BLOCK]
               for p in (0, 1)]
        good = [self.layout.decode_page(self.slot, page, p, raw[p])
                for p in (0, 1)]
        self.born.append(any(raw[0] + raw[1]))
        if not self.born[-1]:
            self.entry += [(0, 0)] * ENTRIES
        elif None in good:
            self.wrong.append('slot %d page %d: place %s is bad' % (
                self.slot, page, ' and '.join(
                    str(p) for p in (0, 1) if good[p] is None)))
            best = max((g for g in good if g), default=(0, [LOST] * ENTRIES))
            self.entry += best[1]
        else:
            self.entry += max(good)[1]

    def block(self, b):
        return self.data[b * BLOCK:(b + 1) * BLOCK]

    def content(self, b):
        """What the block counts as, and what is wrong with it, or None."""
        entry, data = self.entry[b], self.block(b)
        if entry == (0, 0):
            return ZERO, None
        if entry == LOST:
            return data, 'is lost'
        if entry[0] != self.layout.sum(self.slot, b, data):
            return data, 'has another checksum'
        return data, None


def newest_place(layout, slot, page, path):
    """Of a page: the place that was written last, or 0."""
    with open(path, 'rb') as f:
        f.seek(layout.page_off(page, 0))
        raw = f.read(2 * BLOCK)
    good = [layout.decode_page(slot, page, p, raw[p * BLOCK:(p + 1) * BLOCK])
            for p in (0, 1)]
    return int(bool(good[1] and (not good[0] or good[1][0] > good[0][0])))


def truth(layout, code, w, model, block):
    """The k + m blocks of a row, by role, of this content of the array."""
    data = []
    for role in range(layout.k):
        at = layout.address(role, block)
        data.append(bytes(model[at:at + BLOCK]).ljust(BLOCK, b'\0'))
    if not any(map(any, data)):
        return [ZERO] * layout.n
    return data + gf.parity_of(code, w, layout.m, data)


def verify(layout, code, w, model, images):
    """Everything of a stopped array that is wrong, as lines of text."""
    wrong = [line for i in images for line in i.wrong]
    for page in range(layout.nr_pages):
        born = {i.born[page] for i in images}
        if len(born) > 1:
            wrong.append('page %d was written on some slots only' % page)
    for b in range(layout.nr_blocks):
        want = None
        entries = []
        for role in range(layout.n):
            slot = layout.slot(role, b)
            got, why = images[slot].content(b)
            entries.append(images[slot].entry[b])
            if why:
                wrong.append('slot %d block %d %s' % (slot, b, why))
                continue
            want = want or truth(layout, code, w, model, b)
            if got != want[role]:
                wrong.append('slot %d block %d has another content' % (slot,
                                                                       b))
        wrong += _generations(layout, b, entries)
        if len(wrong) > 50:
            return wrong + ['and so on']
    return wrong


def _generations(layout, b, entries):
    parity = {e[1] for e in entries[layout.k:]}
    data = {e[1] for e in entries[:layout.k]}
    if LOST in entries:
        return []
    if len(parity) > 1:
        return ['row %d: parity has generations %s' % (b, sorted(parity))]
    if 0 not in data and not parity & data:
        return ['row %d: no data has the generation of its parity' % b]
    return []
