"""gpuraid: files of known content, and what must be there after a crash.

A Writer runs in a process of its own.  Before each change of a file it writes a
line to its log, which is not on the file system that is tested, and after
the fsync another.  Files reads the log, and compares the files: a change that
was logged as durable must be there, one that was begun may be.

  rN    written once, or rewritten by rename: old or new, as a whole
  aN    only appended to: what was durable is there, and no byte is wrong;
        some of the last append may be zeroes
  dN    blocks of it are written in place: each sector is old or new

SPDX-License-Identifier: BSD-3-Clause
"""

import hashlib
import os
import random
import sys
import time

from lab.array import BLOCK, Failure, Late

DB_BLOCKS = 64
SECTOR = 512


def stream(key, length):
    """Bytes that only depend on key; a longer one begins with a shorter."""
    seed = int.from_bytes(hashlib.blake2b(key.encode()).digest()[:8], 'big')
    return random.Random(seed).randbytes((length + 3) // 4 * 4)[:length]


def block_of(name, block, version):
    return stream('%s %d %d' % (name, block, version), BLOCK)


class Writer:
    """run () ends when the file system does not work any more, or when the
    file "stop" is there."""

    def __init__(self, folder, log, state, seed, stop):
        self.folder, self.stop = folder, stop
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.state = state
        self.rng = random.Random(seed)

    def run(self):
        try:
            while not os.path.exists(self.stop):
                self.rng.choice((self.rewrite, self.rewrite, self.append,
                                 self.blocks, self.blocks, self.remove))()
        except OSError as e:
            self.note('error', e.errno)
        os._exit(0)

    def note(self, *words):
        os.write(self.log, ('%s %d\n' % (' '.join(map(str, words)),
                                         time.monotonic_ns())).encode())

    def path(self, name):
        return os.path.join(self.folder, name)

    def sync_folder(self):
        fd = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def put(self, path, data, flags, off=None):
        fd = os.open(path, flags, 0o600)
        try:
            if off is not None:
                os.lseek(fd, off, os.SEEK_SET)
            while data:
                data = data[os.write(fd, data):]
            os.fsync(fd)
        finally:
            os.close(fd)

    def rewrite(self):
        name = 'r%d' % self.rng.randrange(40)
        version = self.state.get(name, (0, 0))[0] + 1
        length = self.rng.choice((self.rng.randrange(1, 5000),
                                  self.rng.randrange(1, 200000)))
        data = stream('%s %d' % (name, version), length)
        self.note('begin', name, version, length)
        tmp = self.path('tmp')
        self.put(tmp, data, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.rename(tmp, self.path(name))
        self.sync_folder()
        self.note('end', name, version, length)
        self.state[name] = version, length

    def remove(self):
        name = 'r%d' % self.rng.randrange(40)
        version, length = self.state.get(name, (0, 0))
        if length == 0:
            return
        self.note('begin', name, version, 0)
        os.unlink(self.path(name))
        self.sync_folder()
        self.note('end', name, version, 0)
        self.state[name] = version, 0

    def append(self):
        name = 'a%d' % self.rng.randrange(4)
        _, old = self.state.get(name, (0, 0))
        new = old + self.rng.randrange(1, 20000)
        if new > 1 << 20:
            return
        self.note('begin', name, 0, new)
        self.put(self.path(name), stream(name, new)[old:],
                 os.O_WRONLY | os.O_CREAT, old)
        self.sync_folder()
        self.note('end', name, 0, new)
        self.state[name] = 0, new

    def blocks(self):
        name = 'd%d' % self.rng.randrange(2)
        for _ in range(self.rng.randint(1, 8)):
            block = self.rng.randrange(DB_BLOCKS)
            key = '%s/%d' % (name, block)
            version = self.state.get(key, (0, 0))[0] + 1
            self.note('begin', key, version, BLOCK)
            self.put(self.path(name), block_of(name, block, version),
                     os.O_WRONLY | os.O_CREAT, block * BLOCK)
            self.sync_folder()
            self.note('end', key, version, BLOCK)
            self.state[key] = version, BLOCK


class Files:
    """The files of one writer.  state: of each name, version and length that
    are durable; length 0 is none."""

    def __init__(self, folder, log, stop):
        self.folder, self.log, self.stop = folder, log, stop
        self.state = {}
        self.begun = {}         # likewise: changes that may be there
        self.pid = self.error = None
        self.nr = 0             # durable changes

    def start(self, seed):
        os.makedirs(self.folder, exist_ok=True)
        if os.path.exists(self.log):
            os.unlink(self.log)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                Writer(self.folder, self.log, dict(self.state), seed,
                       self.stop).run()
            finally:
                sys.stderr.write('a writer failed\n')
                os._exit(1)

    def end(self, seconds, killed=1 << 63):
        """Its errors end it.  Its log is read.  killed: when the server was,
        in ns: what fsync answered after that does not count.  Once such an
        answer, before EROFS, was for a change that was not there later, and
        nothing shows whether the server or the file system gave it."""
        deadline = time.monotonic() + seconds
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                raise Late('a writer hangs')
            time.sleep(0.01)
        self.pid = None
        self.begun = {}
        self.error = None
        with open(self.log) as f:
            for line in f:
                what, *words, at = line.split()
                if what == 'error':
                    self.error = int(words[0])
                    continue
                name, value = words[0], (int(words[1]), int(words[2]))
                if what == 'begin':
                    self.begun.setdefault(name, []).append(value)
                elif int(at) < killed:
                    del self.begun[name]
                    self.state[name] = value
                    self.nr += 1

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), 'rb') as f:
                return f.read()
        except FileNotFoundError:
            return b''

    def check(self):
        """And take what is there as durable: the caller syncs."""
        for name in {*self.state, *self.begun}:
            may = [self.state.get(name, (0, 0)), *self.begun.get(name, ())]
            found = self.find(name, may)
            if found is None:
                raise Failure('WRONG DATA: %s/%s is none of %s: %s' % (
                    os.path.basename(self.folder), name, may, self.how))
            self.state[name] = found
        self.begun = {}

    def find(self, name, may):
        """Which of these it is, or None."""
        if name[0] == 'd':
            return self.find_block(name, may)
        data = self.read(name)
        self.how = '%d bytes' % len(data)
        if name[0] == 'a':
            return self.find_appended(name, data, may[0][1], may[-1][1])
        for version, length in may:
            if data == (stream('%s %d' % (name, version), length)
                        if length else b''):
                return version, length
        return None

    def find_appended(self, name, data, least, most):
        """The length may be that of an append of which not all bytes are
        there: the others are zeroes, and are cut off."""
        want = stream(name, len(data))
        if not least <= len(data) <= most or data[:least] != want[:least] or \
           any(x not in (0, y) for x, y in zip(data[least:], want[least:])):
            return None
        if data == want:
            return 0, len(data)
        os.truncate(os.path.join(self.folder, name), least)
        return 0, least

    def find_block(self, name, may):
        """A small file system has blocks of 1024 bytes, so it may be neither
        as a whole: then it is written again."""
        name, block = name.split('/')
        off = int(block) * BLOCK
        data = self.read(name)[off:off + BLOCK].ljust(BLOCK, b'\0')
        want = [block_of(name, int(block), version) if version
                else bytes(BLOCK) for version, _ in may]
        for value, whole in zip(may, want):
            if data == whole:
                return value
        for at in range(0, BLOCK, SECTOR):
            if data[at:at + SECTOR] not in [w[at:at + SECTOR] for w in want]:
                self.how = 'sector %d' % (at // SECTOR)
                return None
        with open(os.path.join(self.folder, name), 'r+b') as f:
            f.seek(off)
            f.write(want[-1])
        return may[-1]
