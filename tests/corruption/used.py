"""gpuraid: an array of the corruption campaign, the clients that use it, and
what they wrote.

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import random
import shutil
import tempfile
import time

import nbd

from lab.again import start_again
from lab.array import Array, Failure, MiB

from . import disk

GEOMETRIES = {(1, 1): 2, (2, 1): 3, (4, 2): 4, (3, 3): 3, (10, 4): 2}
CHUNKS = 4096, 16384, 65536, 262144
BLOCK = disk.BLOCK
RING = 4 * MiB
PIECE = MiB                     # of a long read


class Used:
    """model: what it holds; rows: where clients mostly write; count: what was
    done."""

    def __init__(self, seed, parent, verbose, geometry):
        self.seed, self.verbose = seed, verbose
        self.rng = random.Random(seed)
        self.began = time.monotonic()
        self.said = []
        self.count = {'read': 0}
        self.h = None
        self.folder = tempfile.mkdtemp(prefix='gpuraid-corrupt.', dir=parent)
        self._prepare(geometry)

    def _prepare(self, geometry):
        r = self.rng
        k, m = geometry or r.choices(list(GEOMETRIES),
                                     GEOMETRIES.values())[0]
        chunk = r.choice(CHUNKS)
        most = (3 if k < 10 else 2.2) * MiB
        each = r.randrange(MiB // 4, int(r.choice((0.3, 0.5, 1)) * most))
        each = max(each, 2 * chunk)
        size = (k * each - r.randrange(0, k * chunk, BLOCK)) // BLOCK * BLOCK
        code = r.choice(('rs', 'rs', 'crs'))
        self.ring = r.choice((RING, MiB) if chunk > 65536
                             else (RING, MiB, MiB // 2))
        keys = ['cache=' + r.choice(('256M', '16M')),
                'cache-mode=' + r.choice(('writeback', 'writeback',
                                          'writethrough'))]
        self.array = Array(self.folder, k, m, chunk, size, say=self.say,
                           member_size=each + chunk + self.ring + 4 * MiB,
                           code=code, keys=keys)
        self.say('%d+%d, chunk %d, %d bytes, %s, ring %d, %s' % (
            k, m, chunk, size, code, self.ring, ' '.join(keys)))

    def say(self, text):
        line = '%7.2f s  %s' % (time.monotonic() - self.began, text)
        self.said.append(line)
        if self.verbose:
            print('    ' + line, flush=True)

    def close(self, keep=False):
        if self.array.server:
            self.array.server.kill()
            self.array.server.wait()
        if keep:
            with open(os.path.join(self.folder, 'said'), 'w') as f:
                f.write('\n'.join(self.said) + '\n')
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- the server -----------------------------------------------------

    def create(self):
        self.array.create(**{'consistency': 'journal', 'checksum': 'crc32c',
                             'journal-size': self.ring})
        self.layout = disk.Layout(self.array.member[0])
        self.model = bytearray(self.array.size)

    def start(self, members=None):
        start_again(self.array, members)
        self.connect()

    def connect(self):
        self.h = nbd.NBD()
        self.h.connect_uri(self.array.uri)

    def disconnect(self):
        if self.h:
            self.h.shutdown()
            self.h = None

    def stop(self):
        self.h.flush()
        self.disconnect()
        self.array.stop()

    def kill(self):
        self.array.kill()
        self.h = None

    # -- clients --------------------------------------------------------

    def fill(self):
        """Most of it, so that some pages are never written in some arrays."""
        part = self.rng.choice((0.3, 0.8, 1))
        end = int(self.array.size * part) // BLOCK * BLOCK
        for off in range(0, end, 2 * MiB):
            self.write(off, min(2 * MiB, end - off))
        self.h.flush()

    def write(self, off, length):
        length = min(length, self.array.size - off)
        data = self.rng.randbytes(length)
        fua = nbd.CMD_FLAG_FUA if self.rng.random() < 0.05 else 0
        self.h.pwrite(data, off, fua)
        self.model[off:off + length] = data

    def somewhere(self):
        """An address, of a block."""
        r = self.rng
        if r.random() < 0.6:
            at = self.layout.address(r.randrange(self.array.k),
                                     r.choice(self.rows))
            if at < self.array.size:
                return at
        return r.randrange(0, self.array.size, BLOCK)

    def write_some(self, nr=None):
        r, size = self.rng, self.array.size
        stripe = self.array.k * self.array.chunk
        for _ in range(r.randint(1, 30) if nr is None else nr):
            off = self.somewhere()
            kind = r.choices(('blocks', 'long', 'stripe', 'bytes', 'zero',
                              'trim', 'flush'), (8, 2, 2, 8, 2, 1, 2))[0]
            if kind == 'blocks':
                self.write(off, BLOCK * r.choice((1, 1, 2, 8)))
            elif kind == 'long':
                self.write(off, r.randrange(BLOCK, 512 * 1024))
            elif kind == 'stripe':
                self.write(off // stripe * stripe, stripe)
            elif kind == 'bytes':
                self.write(off + r.randrange(BLOCK), r.randint(1, 10000))
            elif kind == 'flush':
                self.h.flush()
            else:
                if r.random() < 0.3:
                    off, length = off // stripe * stripe, stripe
                else:
                    length = BLOCK * r.choice((1, 2, 16, 64))
                length = min(length, size - off)
                (self.h.zero if kind == 'zero' else self.h.trim)(length, off)
                self.model[off:off + length] = bytes(length)

    def read(self, off, length):
        got = self.h.pread(length, off)
        self.count['read'] += length
        want = self.model[off:off + length]
        if got == want:
            return
        at = next(i for i in range(length) if got[i] != want[i])
        row, role = self.layout.row_of(off + at)
        bad = got[at // BLOCK * BLOCK:][:BLOCK]
        raise Failure('WRONG DATA at %d (row %d, role %d, slot %d): %s' % (
            off + at, row, role, self.layout.slot(role, row),
            'zeroes' if not any(bad) else 'other bytes'))

    def read_all(self):
        size = self.array.size
        offs = list(range(0, size, PIECE))
        if self.rng.random() < 0.5:
            self.rng.shuffle(offs)
        for off in offs:
            self.read(off, min(PIECE, size - off))

    def read_some(self):
        for _ in range(self.rng.randint(1, 30)):
            off = self.somewhere() + self.rng.randrange(BLOCK)
            self.read(off, min(self.rng.choice((1, 512, 5000, 100000)),
                               self.array.size - off))

    def quiesce(self):
        """All is in place, and nothing else is done."""
        self.h.flush()
        last = None
        for _ in range(400):
            s = self.array.status()
            now = s['counters']['member_write_ops']
            if s['cache']['dirty'] == 0 and now == last:
                return
            last = now
            time.sleep(0.03)
        raise Failure('the array does not come to rest')
