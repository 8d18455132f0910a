# gpuraid: what a member holds in the model of the journal, and what a
# crash may leave of it.  journal.py tries all of it.
#
# A place on a member is a tuple: what was written last comes first, and
# then all else that a crash may leave there, since the last flush.  A
# member is (headers, ring, pages, blocks, missed):
#
#   header   (counter, session, tail), or None for a torn one
#   record   (session, seq, entries, good, before), or None.  An entry is
#            (row, roles, kind, content) with kind "p" payload, "z" zero
#            flag or "d" direct; good is a mask of the rows whose payload is
#            whole, before the seq of the last transaction that changed the
#            table page.
#   page     (counter, entries, seq of the last transaction in it), or
#            None for a torn one.  An entry is ZERO or (content,
#            generation): content stands for its crc.  One page has the
#            entries of all rows.
#   block    content, or TORN
#   missed   a mask of rows
#
# The content of a data block is a number; that of a parity block is the
# tuple of the data that it was made from.  So a set of blocks is of one
# code word if no two of them differ in what they say.
#
# SPDX-License-Identifier: BSD-3-Clause

from itertools import product

TORN = -1
ZERO = ()
HDR, RING, PAGE, BLOCK, MISSED = range(5)


class Broken(Exception):
    pass


BITS = [tuple(i for i in range(8) if mask >> i & 1) for mask in range(256)]


def bits(mask):
    return BITS[mask]


def put(place, value, torn=()):
    """value is written, and not flushed."""
    if place == (value,):
        return place
    rest = []
    for x in place + tuple(torn):
        if x != value and x not in rest:
            rest.append(x)
    if len(rest) > 1:
        rest.sort(key=repr)
    return (value,) + tuple(rest)


def change(member, what, nr, place):
    part = member[what]
    part = part[:nr] + (place,) + part[nr + 1:]
    return member[:what] + (part,) + member[what + 1:]


def flushed(member):
    return tuple([tuple([(place[0],) for place in part]) for part in member])


def reverted(member):
    """All that was not flushed is gone: the oldest that may be there."""
    def oldest(place):
        old = [x for x in place[1:] if x not in (None, TORN)]
        return (old[0],) if old else place[-1:]
    return tuple([tuple([oldest(place) for place in part])
                  for part in member])


def unwritten(member, row):
    """A block of a row that was written for the first time is as it was."""
    place = member[BLOCK][row]
    old = tuple([x for x in place[1:] if x != TORN])
    return change(member, BLOCK, row, old[:1] or place)


def is_flushed(member, what=None):
    parts = member if what is None else (member[what],)
    return all(len(place) == 1 for part in parts for place in part)


def torn_record(rec):
    """What a crash may leave of a record that is written: no header, or
    one with some of the payload."""
    session, seq, entries, good, before = rec
    payload = sum(1 << e[0] for e in entries if e[2] == "p")
    out = [None]
    for mask in range(8):
        if mask & ~payload == 0 and mask != good & payload:
            out.append((session, seq, entries, mask | good & ~payload,
                        before))
    return out


def newest(places):
    """Of two places written in turn, what counts, or None."""
    best = None
    for x in places:
        if x is not None and (best is None or x[0] > best[0]):
            best = x
    return best


def older_place(places):
    """Which of the two is written next."""
    a, b = places[0][0], places[1][0]
    if a is None or b is None:
        return 0 if a is None else 1
    return 0 if a[0] < b[0] else 1


def rotten(image):
    """An image with one block that is not what was written."""
    for what in (HDR, RING, PAGE, BLOCK):
        for nr, x in enumerate(image[what]):
            if x is None or x == TORN:
                continue
            bad = [TORN if what == BLOCK else None]
            if what == RING:
                bad += [x[:3] + (x[3] & ~(1 << e[0]), x[4]) for e in x[2]
                        if e[2] == "p" and x[3] >> e[0] & 1]
            for y in bad:
                part = image[what][:nr] + (y,) + image[what][nr + 1:]
                yield image[:what] + (part,) + image[what + 1:]


class Images:
    """What a crash leaves of a member, where equal ones are one: what no
    recovery can tell apart or will ever read is made the same."""

    def __init__(self, sums, rot, without):
        self.sums = sums
        self.turn = rot or "turn" in without
        self.session = "session" in without
        self.known, self.bad = {}, {}

    def rotted(self, member):
        """The same, with one block of it rotted."""
        found = self.bad.get(member)
        if found is None:
            parts = [list(product(*part)) for part in member]
            found = dict.fromkeys(self.same(y) for x in product(*parts)
                                  for y in rotten(x))
            found = self.bad[member] = list(found)
        return found

    def of(self, member):
        found = self.known.get(member)
        if found is None:
            parts = [list(product(*part)) for part in member]
            found = dict.fromkeys(self.same(x) for x in product(*parts))
            found = self.known[member] = list(found)
        return found

    def same(self, image):
        hdrs, ring, pages, blocks, missed = image
        head = newest(hdrs)
        if head and not self.turn:
            # the older one is written next, and not read before
            hdrs = ((1,) + head[1:], (0,) + head[1:])
        session, tail = head[1:] if head else (None, 0)
        if not self.session:
            ring = tuple([r if r and (not head or r[0] == session and
                                      r[1] >= tail)
                          else None for r in ring])
        if self.sums and not self.turn:
            page = newest(pages)
            if None not in pages:
                pages = ((1,) + page[1:], (0,) + page[1:])
            elif page:
                pages = ((1,) + page[1:], None)
        if self.sums:
            blocks = tuple([self.block(row, b, ring, pages)
                            for row, b in enumerate(blocks)])
        return tuple([tuple([(x,) for x in part]) for part in
                      (hdrs, ring, pages, blocks, missed)])

    def block(self, row, content, ring, pages):
        """A block that fits no checksum is as good as a torn one."""
        for page in pages:
            if page and page[1][row] and page[1][row][0] == content:
                return content
        for rec in ring:
            for e in rec[2] if rec else ():
                if e[0] == row and e[2] == "d" and e[3] == content:
                    return content
        return TORN
