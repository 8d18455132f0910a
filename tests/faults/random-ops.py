#!/usr/bin/python3
"""gpuraid: random requests on random arrays, against a model of bytes.

Every request begins and ends wherever it likes.  In between, members
fail, are replaced and go missing, and the server is stopped or killed.
The model keeps, for each block, all that it may hold after a crash.

The list of operations is made from the seed before anything runs; each
carries all of its numbers, so a list that fails is made shorter by
leaving operations out, and printed.

usage: tests/faults/random-ops.py [--seed N] [--runs N] [--seconds S]
       tests/faults/random-ops.py --replay FILE

SPDX-License-Identifier: BSD-3-Clause
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import types

import nbd

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                '..'))
from lab import evidence, gf                                     # noqa: E402
from lab.array import (BLOCK, LATE, TRUST, Array, Failure,             # noqa: E402
                       Late, MiB, Refused, end_cleanly)

SECTOR = 512
FUA = nbd.CMD_FLAG_FUA
GEOMETRIES = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (4, 2), (3, 3), (5, 2),
              (6, 3), (8, 4), (12, 4))
WEIGHTS = dict(read=30, write=30, zero=6, trim=5, flush=4, cache=2,
               extents=3, fail=2, replace=2, restart=1.2, kill=1.2,
               missing=1, wait=1)


def pattern(seed, n):
    return random.Random(seed).randbytes(n)


class Model:
    def __init__(self, size):
        self.size = size
        self.now = bytearray(size)
        self.may = {}           # block -> [bytes]: what a crash may leave
        self.any = set()        # blocks that may hold anything
        self.wrong_at = None    # a byte, and what was read from its block on

    def write(self, off, data, fua):
        end = off + len(data)
        blocks = range(off // BLOCK, (end - 1) // BLOCK + 1)
        for b in blocks:
            if b not in self.may:
                self.may[b] = [self.block(b)]
        self.now[off:end] = data
        for b in blocks:
            if fua:
                # The block is what it is now, all of it: a part that was
                # written before without FUA may be lost on its own.
                if off <= b * BLOCK and end >= min((b + 1) * BLOCK,
                                                   self.size):
                    del self.may[b]
                    continue
                lo = max(0, off - b * BLOCK)
                hi = min(BLOCK, end - b * BLOCK)
                part = data[b * BLOCK + lo - off:b * BLOCK + hi - off]
                self.may[b] = [v[:lo] + part + v[hi:] for v in self.may[b]]
            self.may[b].append(self.block(b))

    def block(self, b):
        return bytes(self.now[b * BLOCK:(b + 1) * BLOCK])

    def flush(self):
        self.may = {}

    def crash(self, array, absent):
        """kill -9; absent: slots whose part of rows in flight may be gone."""
        per_chunk = array.chunk // BLOCK
        rows = {(b // (array.k * per_chunk), b % per_chunk)
                for b in self.may}
        lost = set()
        for stripe, row in rows if absent else ():
            for role in range(array.k):
                b = (stripe * array.k + role) * per_chunk + row
                if gf.slot_of(array.k, array.m, stripe, role) in absent and \
                   b * BLOCK < self.size:
                    lost.add(b)
        return lost

    def settle(self, data, lost):
        """After a crash: is what was found possible?  It stays, then."""
        for b, may in self.may.items():
            if b in lost:
                continue
            got = data[b * BLOCK:(b + 1) * BLOCK]
            for s in range(0, len(got), SECTOR):
                if not any(v[s:s + SECTOR] == got[s:s + SECTOR]
                           for v in may):
                    self.wrong_at = b * BLOCK + s, got
                    raise Failure('block %d sector %d is neither old nor new '
                                  'after kill -9' % (b, s // SECTOR))
            self.now[b * BLOCK:b * BLOCK + len(got)] = got
        for b in lost:
            self.now[b * BLOCK:(b + 1) * BLOCK] = \
                data[b * BLOCK:(b + 1) * BLOCK]
        self.may = {}
        self.compare(0, data, 'after kill -9')

    def compare(self, off, data, how):
        want = bytes(self.now[off:off + len(data)])
        if want != bytes(data):
            i = next(i for i in range(len(want)) if want[i] != data[i])
            n = sum(x != y for x, y in zip(want, data))
            self.wrong_at = off + i, bytes(data[i:i + BLOCK])
            raise Failure('%s at %d, %d bytes: %d differ, the first at %d '
                          '(block %d): %#x instead of %#x' % (
                              how, off, len(data), n, off + i,
                              (off + i) // BLOCK, data[i], want[i]))


def make_range(r, size):
    n = r.choice((r.randint(1, 600), r.randint(1, 9000), BLOCK,
                  r.randint(1, 70000), 65536, r.randint(1, 1 << 20)))
    n = min(n, size)
    off = r.randrange(size - n + 1)
    if r.random() < 0.3:
        off -= off % BLOCK
    return off, n


def make_case(seed):
    """All of one run, from the seed alone."""
    r = random.Random(seed)
    k, m = r.choice(GEOMETRIES)
    chunk = r.choice((4096, 8192, 16384, 65536, 65536, 131072, 1 << 20))
    stripe = k * chunk
    size = r.randint(1, max(3, 4 * MiB // stripe)) * stripe \
        - r.randrange(0, stripe, BLOCK)
    ops = []
    for _ in range(r.randint(40, 160)):
        kind = r.choices(list(WEIGHTS), WEIGHTS.values())[0]
        off, n = make_range(r, size)
        op = dict(op=kind)
        if kind in ('read', 'write', 'zero', 'trim', 'cache', 'extents'):
            op.update(off=off, len=n)
        if kind in ('write', 'zero', 'trim'):
            op.update(fua=r.random() < 0.15)
        if kind == 'zero':
            op.update(no_hole=r.random() < 0.5)
        if kind == 'write':
            op.update(data=r.randrange(1 << 30))
        if kind in ('fail', 'replace'):
            op.update(slot=r.randrange(k + m))
        if kind in ('missing', 'kill'):
            op.update(slots=r.sample(range(k + m), r.randint(0, m))
                      if kind == 'missing' or r.random() < 0.3 else [])
        ops.append(op)
    keys = {'cache-mode': 'writethrough'} if r.random() < 0.15 else {}
    if r.random() < 0.3:
        keys['coder'] = 'gf-complete'
    code, w = r.choice((('rs', 8), ('rs', 8), ('crs', 4), ('crs', 8)))
    trust = r.choice(TRUST[:1] * 2 + TRUST)
    return dict(seed=seed, trust=trust, k=k, m=m, chunk=chunk, size=size, keys=keys,
                code=code, w=w if k + m <= 16 else 8, ops=ops)


class Run:
    def __init__(self, case, folder, verbose=False):
        self.case = case
        self.verbose = verbose
        self.array = Array(folder, case['k'], case['m'], case['chunk'],
                           case['size'], code=case['code'], w=case['w'],
                           trust=case['trust'])
        self.keys = {k.replace('-', '_'): v for k, v in case['keys'].items()}
        self.h = self.model = None
        self.history = evidence.History()
        self.said = []
        self.parity_open = False        # after kill -9, until wait
        self.old = {}           # slot -> path replaced, may be in use yet

    def go(self):
        self.array.create()
        if self.array.size != self.case['size']:
            raise Failure('size %d instead of %d' % (self.array.size,
                                                     self.case['size']))
        self.model = Model(self.array.size)
        self.start()
        for i, op in enumerate(self.case['ops']):
            if self.verbose:
                print(i, op, flush=True)
            self.at = '%d: %s' % (i, op)
            self.said.append(self.at)
            self.do(i, op)
        self.at = 'the end'
        self.op_wait({})
        self.all_right()
        absent = self.absent()
        self.stop()
        self.array.audit(skip=absent)
        self.array.start(**self.keys)
        self.connect()
        self.all_right()
        self.stop()

    def do(self, i, op):
        """Operation i is "generation" i in the history; reads that are
        compared are there, too."""
        call = getattr(self, 'op_' + op['op'])
        if op['op'] not in ('read', 'write', 'zero', 'trim', 'flush'):
            with self.history.during('%d: %s' % (i, op)):
                call(op)
            return
        first = op.get('off', 0) // BLOCK
        end = (op.get('off', 0) + op.get('len', 0) - 1) // BLOCK + 1
        note = types.SimpleNamespace(
            kind=op['op'], b0=first, nr=end - first, gen=i, on=0, err=None,
            fua=op.get('fua', False), start=time.monotonic(), end=None)
        self.history.add(note)
        call(op)
        note.end, note.err = time.monotonic(), 0

    def keep(self):
        """After a failure: see evidence.keep."""
        return evidence.keep(
            'random-ops-%d' % self.case['seed'], self.array.folder,
            self.array, self.said, self.about_wrong(), self.history)

    def about_wrong(self):
        if self.model is None or self.model.wrong_at is None:
            if self.array.wrong_at is None:
                return None
            off, got = self.array.wrong_at, b''
        else:
            off, got = self.model.wrong_at
        b = off // BLOCK
        may = self.model.may.get(b, ())
        return types.SimpleNamespace(
            off=off, got=got, blocks=[b], unit=BLOCK, name=self.name_sector,
            versions={'what it should have': self.model.block(b), **{
                'version %d of it' % i: v for i, v in enumerate(may)}},
            words='byte %d, in block %d; %d contents are possible there '
            'after a crash' % (off, b, len(may)))

    def name_sector(self, off, data):
        """Whose bytes they are, if they are all of one operation."""
        if data == self.model.now[off:off + SECTOR]:
            return 'right'
        if not data.strip(b'\0'):
            return 'zeroes'
        for i, op in enumerate(self.case['ops']):
            if op['op'] == 'write' and op['off'] <= off and \
               off + SECTOR <= op['off'] + op['len'] and \
               pattern(op['data'], op['len'])[off - op['off']:][:SECTOR] \
               == data:
                return 'of operation %d' % i
        return 'unknown: ' + data[:8].hex()

    # -- helpers --------------------------------------------------------

    def connect(self):
        self.h = nbd.NBD()
        self.h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
        self.h.connect_uri(self.array.uri)
        if self.h.get_size() != self.case['size']:
            raise Failure('the export has %d bytes' % self.h.get_size())

    def start(self, members=None, **keys):
        self.array.start(self.paths() if members is None else members,
                         **{**self.keys, **keys})
        self.connect()

    def stop(self):
        self.h.flush()
        self.model.flush()
        self.h.shutdown()
        self.h = None
        self.array.stop()

    def absent(self):
        return {s for s, state in enumerate(self.array.states())
                if state != 'active'}

    def read_all(self):
        return b''.join(bytes(self.h.pread(min(MiB, self.model.size - o), o))
                        for o in range(0, self.model.size, MiB))

    def all_right(self):
        self.model.compare(0, self.read_all(), 'all')

    # -- requests -------------------------------------------------------

    def op_read(self, op):
        self.model.compare(op['off'], self.h.pread(op['len'], op['off']),
                           'read')

    def op_write(self, op):
        data = pattern(op['data'], op['len'])
        self.h.pwrite(data, op['off'], FUA if op['fua'] else 0)
        self.wrote(op, data)

    def wrote(self, op, data):
        # Written through is as durable as FUA.
        self.model.write(op['off'], data,
                         op['fua'] or 'cache_mode' in self.keys)

    def op_zero(self, op):
        self.h.zero(op['len'], op['off'], (FUA if op['fua'] else 0) |
                    (nbd.CMD_FLAG_NO_HOLE if op['no_hole'] else 0))
        self.wrote(op, bytes(op['len']))

    def op_trim(self, op):
        self.h.trim(op['len'], op['off'], FUA if op['fua'] else 0)
        self.wrote(op, bytes(op['len']))

    def op_flush(self, op):
        self.h.flush()
        self.model.flush()

    def op_cache(self, op):
        if self.h.can_cache():
            self.h.cache(op['len'], op['off'])

    def op_extents(self, op):
        runs = []

        def extent(context, offset, entries, err):
            runs.extend(zip(entries[0::2], entries[1::2]))
        self.h.block_status(op['len'], op['off'], extent)
        if not runs:
            raise Failure('block status gave nothing')
        off = op['off']
        for length, flags in runs:
            n = min(length, op['off'] + op['len'] - off)
            if flags & nbd.STATE_ZERO and \
               any(self.model.now[off:off + n]):
                raise Failure('block status: zeroes at %d, %d bytes: not so'
                              % (off, n))
            off += n

    # -- events ---------------------------------------------------------

    def op_fail(self, op):
        if self.parity_open:
            self.op_wait({})
        slot, states = op['slot'], self.array.states()
        enough = states.count('active') > self.array.k
        settled = states[slot] == 'active' and 'rebuilding' not in states
        try:
            self.array.fail(slot)
        except Refused:
            if settled and enough:
                raise
            return
        if settled and not enough:
            raise Failure('fail was not refused with %d active members'
                          % states.count('active'))

    def op_replace(self, op):
        if self.parity_open:
            self.op_wait({})
        slot = op['slot']
        entries = [e for e in self.array.status()['members']
                   if e['slot'] == slot]
        if len(entries) > 1 or entries[0]['state'] == 'rebuilding':
            return
        self.old[slot] = self.array.replace(slot)

    def op_wait(self, op):
        self.array.wait()
        self.array.until_resynced()
        for slot in set(self.old) - self.absent():
            os.unlink(self.old.pop(slot))
        self.parity_open = False

    def paths(self, away=()):
        """All files but those of these slots."""
        return [p for s, p in [*enumerate(self.array.member),
                               *self.old.items()] if s not in away]

    def op_restart(self, op):
        absent = self.absent()
        self.stop()
        try:
            self.start()
        except Refused as e:
            # Parity was still being made anew after kill -9: what the
            # absent ones hold there is no surer than it was then.  But it
            # is what was read since.
            if not (self.parity_open and absent and 'force' in str(e)):
                raise
            self.start(degraded='force')
        self.all_right()

    def op_missing(self, op):
        """A clean stop, and a start without some."""
        self.op_wait({})
        absent = self.absent()
        self.stop()
        away = [s for s in op['slots'] if s not in absent]
        active = self.array.n - len(absent)
        allowed = self.array.quorum_missing(active)
        most = self.array.quorum_missing(active, len(absent))
        try:
            self.start(self.paths(away))
            if len(away) > most:
                raise Failure('started with %d missing, %d are allowed'
                              % (len(away), most))
        except Refused:
            if len(away) <= allowed:
                raise
            self.start()
        self.all_right()

    def op_kill(self, op):
        absent = self.absent()
        allowed = self.array.quorum_missing(self.array.n - len(absent))
        away = {s for s in op['slots']
                if s not in absent and s not in self.old}
        away = set(sorted(away)[:allowed])
        if self.parity_open and (absent or away):
            # Rows of the crash before could be lost in this one.
            self.op_wait({})
            absent = self.absent()
            away -= absent
        self.array.kill()
        lost = set()
        try:
            self.start(self.paths(away))
        except Refused as e:
            if not (absent or away) or 'force' not in str(e):
                raise
            lost = self.model.crash(self.array, absent | away)
            self.start(self.paths(away), degraded='force')
        self.model.settle(self.read_all(), lost)
        self.parity_open = True


def attempt(case, verbose=False, keep=True):
    """None, or what went wrong, and whether it is only late."""
    folder = tempfile.mkdtemp(prefix='gpuraid-ops.', dir='/dev/shm')
    run = Run(case, folder, verbose)
    run.at = 'create'
    try:
        run.go()
        return None
    except (Failure, Refused, nbd.Error) as e:
        kept, lines = run.keep() if keep else (None, ())
        return '\n'.join(('%s: %s at operation %s' % (
            type(e).__name__, e, run.at), *lines, 'kept: %s' % kept)), \
            isinstance(e, Late)
    finally:
        if run.array.server:
            run.array.server.kill()
            run.array.server.wait()
        run.h = None
        shutil.rmtree(folder)


def shrink(case, seconds):
    """Leave out operations as long as it still fails."""
    end = time.monotonic() + seconds
    ops = case['ops']
    step = len(ops) // 2
    while step and time.monotonic() < end:
        i = 0
        while i < len(ops) and time.monotonic() < end:
            fewer = ops[:i] + ops[i + step:]
            if attempt(dict(case, ops=fewer), keep=False):
                ops = fewer
            else:
                i += step
        step //= 2
    return dict(case, ops=ops)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--seed', type=int)
    p.add_argument('--runs', type=int, default=1 << 30)
    p.add_argument('--seconds', type=float, default=20,
                   help='begin no run after that')
    p.add_argument('--shrink', type=float, default=60, metavar='SECONDS')
    p.add_argument('--replay', metavar='FILE')
    p.add_argument('--without', default='', metavar='OP,...',
                   help='leave these kinds of operations out')
    p.add_argument('--verbose', action='store_true')
    opts = p.parse_args()
    end_cleanly()
    if opts.replay:
        with open(opts.replay) as f:
            wrong = attempt(json.load(f), opts.verbose)
        print(wrong[0] if wrong else 'all right')
        return 0 if not wrong else LATE if wrong[1] else 1
    first = opts.seed
    if first is None:
        first = random.SystemRandom().randrange(1 << 31)
    print('test-random-ops: seed %d' % first, flush=True)
    end = time.monotonic() + opts.seconds
    seed = first
    while seed < first + opts.runs and (seed == first
                                        or time.monotonic() < end):
        case = make_case(seed)
        case['ops'] = [op for op in case['ops']
                       if op['op'] not in opts.without.split(',')]
        wrong = attempt(case, opts.verbose)
        if wrong:
            print('seed %d: %d+%d chunk %d: %s' % (
                seed, case['k'], case['m'], case['chunk'], wrong[0]))
            if wrong[1]:
                return LATE
            small = shrink(case, opts.shrink)
            with tempfile.NamedTemporaryFile(
                    'w', prefix='random-ops-', suffix='.json',
                    delete=False) as f:
                json.dump(small, f)
            print('again: %s --seed %d --runs 1' % (sys.argv[0], seed))
            print('shorter: %s --replay %s: %s' % (sys.argv[0], f.name, dict(
                small, ops=small['ops'] if len(small['ops']) < 20
                else len(small['ops']))))
            return 1
        seed += 1
    print('test-random-ops: %d arrays, all right' % (seed - first))
    return 0


if __name__ == '__main__':
    sys.exit(main())
