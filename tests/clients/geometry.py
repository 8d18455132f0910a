#!/usr/bin/python3
"""gpuraid: is every byte where the format says, and no other?

Writes known data, stops the server, and looks at the members from
outside: chunk s of a member lies at data_off + s * chunk, the data chunks
of stripe s and its parity are those of the code, in the slots of
layout 0.  All of it computed here anew (lab/gf.py); for m = 1 and 2 by
md's formulas as well.

SPDX-License-Identifier: BSD-3-Clause
"""

import argparse
import os
import random
import shutil
import sys
import tempfile

import nbd

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                '..'))
from lab import gf                                              # noqa: E402
from lab.array import (BLOCK, TRUST, Array, Failure, MiB,                # noqa: E402
                       end_cleanly)

CASES = ((1, 1, 4096), (2, 1, 65536), (4, 1, 16384), (7, 1, 4096),
         (1, 2, 65536), (4, 2, 65536), (5, 2, 1 << 20), (10, 2, 8192),
         (3, 3, 4096), (10, 4, 65536), (6, 5, 16384), (12, 4, 131072),
         (20, 8, 4096), (48, 16, 4096), (63, 1, 4096), (1, 63, 4096),
         (1, 1, 4096, 'crs'), (4, 2, 65536, 'crs'), (5, 3, 16384, 'crs', 8),
         (10, 4, 65536, 'crs'), (10, 4, 8192, 'crs', 8),
         (8, 8, 4096, 'crs'), (13, 4, 4096, 'crs'), (20, 8, 4096, 'crs'),
         (48, 16, 4096, 'crs'), (1, 63, 4096, 'crs'))


def check(what, ok):
    if not ok:
        raise Failure(what)


def examine_all(a):
    """What the superblocks say, in order of slots."""
    infos = [a.examine(p) for p in a.member]
    for slot, info in enumerate(infos):
        for key, want in (('slot', slot), ('k', a.k), ('m', a.m),
                          ('chunk', a.chunk), ('code', a.code),
                          ('w', a.w),
                          ('size', a.size), ('uuid', infos[0]['uuid']),
                          ('data_off', infos[0]['data_off']),
                          ('data_len', infos[0]['data_len'])):
            check('examine: slot %d: %s is %s, not %s' % (
                slot, key, info[key], want), info[key] == want)
    return infos[0]


def compare(a, data, info):
    off, stripes = info['data_off'], -(-a.size // (a.k * a.chunk))
    check('data_off %d is no multiple of 1 MiB' % off, off % MiB == 0)
    check('data_len %d, %d stripes' % (info['data_len'], stripes),
          info['data_len'] == stripes * a.chunk)
    data = data + bytes(stripes * a.k * a.chunk - len(data))
    files = [open(p, 'rb') for p in a.member]
    try:
        for s in range(stripes):
            at = s * a.k * a.chunk
            chunks = [data[at + i * a.chunk:at + (i + 1) * a.chunk]
                      for i in range(a.k)]
            chunks += gf.parity_of(a.code, a.w, a.m, chunks)
            if a.m <= 2 and a.code == 'rs':
                p, q = gf.md_pq(chunks[:a.k])
                check('md parity', [p, q][:a.m] == chunks[a.k:])
            for role, want in enumerate(chunks):
                slot = gf.slot_of(a.k, a.m, s, role)
                if a.m <= 2:
                    check('md layout',
                          slot == gf.md_slot_of(a.k, a.m, s, role))
                f = files[slot]
                f.seek(off + s * a.chunk)
                check('stripe %d: what slot %d holds is not role %d' % (
                    s, slot, role), f.read(a.chunk) == want)
    finally:
        for f in files:
            f.close()


def one(r, k, m, chunk, code='rs', w=None):
    folder = tempfile.mkdtemp(prefix='gpuraid-geometry.', dir='/dev/shm')
    a = None
    try:
        stripe = k * chunk
        nr = max(3, min(2 * (k + m) + 1, 3 * MiB // stripe))
        size = nr * stripe - r.randrange(0, stripe, BLOCK)
        a = Array(folder, k, m, chunk, size, code=code, w=w,
                  trust=r.choice(TRUST))
        a.create()
        want = w or (4 if code == 'crs' and k + m <= 16 else 8)
        check('w %d instead of %d' % (a.w, want), a.w == want)
        check('size %d instead of %d' % (a.size, size), a.size == size)
        # As a person might: the members in any order.
        order = a.member[:]
        r.shuffle(order)
        a.start(order)
        h = nbd.NBD()
        h.connect_uri(a.uri)
        data = bytearray(r.randbytes(size))
        for off in range(0, size, MiB):
            h.pwrite(data[off:off + MiB], off)
        for _ in range(30):     # small ones change parity by themselves
            n = r.randint(1, min(3 * chunk, size, MiB))
            off = r.randrange(size - n + 1)
            data[off:off + n] = r.randbytes(n)
            h.pwrite(data[off:off + n], off)
            if r.random() < 0.2:
                h.flush()
        n = r.randint(1, size)
        off = r.randrange(size - n + 1)
        n = min(n, 2 * MiB)
        data[off:off + n] = bytes(n)
        h.zero(n, off)
        h.flush()
        h.shutdown()
        a.stop()
        compare(a, bytes(data), examine_all(a))
    finally:
        if a and a.server:
            a.server.kill()
            a.server.wait()
        shutil.rmtree(folder)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--seed', type=int)
    opts = p.parse_args()
    end_cleanly()
    seed = opts.seed
    if seed is None:
        seed = random.SystemRandom().randrange(1 << 31)
    print('test-geometry: seed %d' % seed)
    for case in CASES:
        try:
            one(random.Random('%d %s' % (seed, case)), *case)
        except Exception:
            print('test-geometry: %s, seed %d' % (case, seed))
            raise
    print('test-geometry: %d geometries are right' % len(CASES))


if __name__ == '__main__':
    main()
