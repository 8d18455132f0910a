#!/usr/bin/python3
"""gpuraid: the models of the labs must find what is wrong, and only that.

No server: the model is told what was written, and shown what a good and
a bad array would answer.

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                '..'))
from lab import gf                                              # noqa: E402
from lab.array import BLOCK                                     # noqa: E402
from lab.workload import ANY, Model, ZERO, content, describe    # noqa: E402
from powerfail.load import SectorModel                          # noqa: E402

SEED = 1


def made():
    """Eight blocks, of generations 1 to 8, flushed."""
    m = Model(8 * BLOCK, SEED)
    for b in range(8):
        write(m, b, 1, b + 1)
    m.flush_end(m.flush_begin())
    assert not m.hist
    return m


def write(m, b, nr, gen, ok=True, fua=False):
    m.begin(b, nr, gen)
    m.end(b, nr, gen, ok, fua)


def c(b, gen):
    return content(SEED, b, gen)


def good(m, b, data):
    assert m.check(b, data) is None, m.check(b, data)


def bad(m, b, data):
    assert m.check(b, data) is not None


def test_read():
    m = made()
    good(m, 0, b''.join(c(b, b + 1) for b in range(8)))
    bad(m, 3, c(3, 3))                  # a write that was lost
    bad(m, 3, c(4, 4))                  # somewhere else's
    bad(m, 3, ZERO)
    wrong = bytearray(c(3, 4))
    wrong[-1] ^= 1
    bad(m, 3, bytes(wrong))             # one bit
    write(m, 3, 1, 0)
    good(m, 3, ZERO)
    bad(m, 3, c(3, 4))                  # not zeroed


def test_crash():
    m = made()
    write(m, 2, 1, 10)                  # acknowledged, not flushed
    write(m, 3, 1, 11, fua=True)
    write(m, 4, 1, 12)
    write(m, 4, 1, 13)
    write(m, 5, 1, 14, ok=False)        # in flight
    assert m.crash() == [2, 4, 5]
    for b, gens in ((2, (3, 10)), (4, (5, 12, 13)), (5, (6, 14))):
        for g in gens:
            good(m, b, c(b, g))
        bad(m, b, c(b, 99))
        bad(m, b, ZERO)
    bad(m, 3, c(3, 4))                  # FUA was lost
    good(m, 3, c(3, 11))
    torn = c(2, 3)[:512] + c(2, 10)[512:]
    good(m, 2, torn)
    bad(m, 2, c(2, 3)[:100] + c(2, 10)[100:])   # inside a sector
    # What was found stays.
    assert m.check(2, torn, pin=True) is None
    good(m, 2, torn)
    bad(m, 2, c(2, 10))
    assert m.check(4, c(4, 12), pin=True) is None
    bad(m, 4, c(4, 13))


def test_flush():
    m = made()
    write(m, 1, 1, 10)
    m.begin(2, 1, 11)                   # in flight when the flush begins
    token = m.flush_begin()
    write(m, 1, 1, 12)                  # after it
    m.end(2, 1, 11, True, False)
    m.flush_end(token)
    m.crash()
    good(m, 1, c(1, 10))
    good(m, 1, c(1, 12))
    bad(m, 1, c(1, 2))                  # was flushed away
    good(m, 2, c(2, 3))                 # the flush did not cover it
    good(m, 2, c(2, 11))


def test_failed_flush():
    m = made()
    write(m, 1, 1, 10)
    m.flush_begin()                     # never ends: it failed
    m.crash()
    good(m, 1, c(1, 2))
    good(m, 1, c(1, 10))


def test_failed_write():
    m = made()
    write(m, 1, 2, 10, ok=False)
    good(m, 1, c(1, 2) + c(2, 10))
    bad(m, 1, c(1, 3) + c(2, 10))
    write(m, 1, 1, 11)
    bad(m, 1, c(1, 10))
    m.flush_end(m.flush_begin())
    m.crash()
    good(m, 1, c(1, 11) + c(2, 3))
    good(m, 1, c(1, 11) + c(2, 10))
    bad(m, 1, c(1, 2))


def test_flush_and_failed_write():
    """The flush began while the write was under way, and its answer comes after
    that of the write, which failed: the row is still open."""
    m = made()
    m.begin(2, 1, 10)
    token = m.flush_begin()
    m.end(2, 1, 10, False, False)
    m.flush_end(token)
    assert m.crash() == [2], 'a failed write was forgotten'
    good(m, 2, c(2, 3))
    good(m, 2, c(2, 10))
    bad(m, 2, c(2, 11))
    # One that was acknowledged is closed by it.
    m = made()
    m.begin(2, 1, 10)
    m.end(2, 1, 10, True, False)
    m.flush_end(m.flush_begin())
    assert m.crash() == []


def test_describe():
    assert describe(ZERO[:512]) == 'zeroes'
    assert describe(c(2, 10)[512:1024]) == 'block 2 generation 10'
    assert describe(sectors([7], 3)) == 'block 3 generation 7'
    mix = bytearray(c(2, 10)[:512])
    mix[-1] ^= 1
    assert describe(bytes(mix)).startswith('a mix'), describe(bytes(mix))
    # As it looks where P is old and Q new, say.
    mix = gf.xor(gf.xor(c(2, 10), c(2, 11)), c(2, 12))[:512]
    assert describe(mix).startswith('a mix'), describe(mix)


def test_lose():
    """One block in flight: its row's block on the absent slot may be gone,
    its neighbours not."""
    class A:
        k, m, chunk, n = 2, 1, 2 * BLOCK, 3
    for slot in range(A.n):
        m = made()
        write(m, 1, 1, 10)              # stripe 0, role 0, row 1
        m.lose(A, m.crash(), {slot})
        may = {b for b in range(8) if m.now[b] is ANY}
        want = {b for role, b in ((0, 1), (1, 3))
                if gf.slot_of(A.k, A.m, 0, role) == slot}
        assert may == want, (slot, may, want)


def by_sector(whole):
    """The power-fail rig's: sectors 0 to 7 of generation 1, flushed; then
    block 0 of generation 2, and in block 1 one sector."""
    m = SectorModel(4 * BLOCK, SEED, 512)
    m.whole = whole
    write(m, 0, 16, 1)
    m.flush_end(m.flush_begin())
    write(m, 0, 8, 2)
    write(m, 9, 1, 3)
    m.crash()
    return m


def sectors(gens, first=0):
    return b''.join(content(SEED, first + i, g, 512)
                    for i, g in enumerate(gens))


def test_sectors():
    m = by_sector(False)
    good(m, 0, sectors([1] * 8))
    good(m, 0, sectors([2] * 8))
    good(m, 0, sectors([1, 2] * 4))
    bad(m, 0, sectors([1, 3] * 4))
    good(m, 3, sectors([1, 2], 3))      # not the whole block
    good(m, 8, sectors([1, 3] + [1] * 6, 8))
    bad(m, 8, sectors([1, 1, 3] + [1] * 5, 8))


def test_whole_blocks():
    m = by_sector(True)
    good(m, 0, sectors([1] * 8))
    good(m, 0, sectors([2] * 8))
    bad(m, 0, sectors([1, 2] * 4))
    good(m, 0, sectors([2] * 8 + [1, 3] + [1] * 6))
    bad(m, 0, sectors([2] * 7 + [1, 1, 3] + [1] * 6))
    assert m.check(0, sectors([2] * 8), pin=True) is None
    bad(m, 0, sectors([1] * 8))


for name, test in list(globals().items()):
    if name.startswith('test_'):
        test()
print('test-lab-model: all right')
