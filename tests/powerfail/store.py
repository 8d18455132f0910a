"""gpuraid: members whose power can fail.

One nbdkit with volatile-plugin.so has the disks of this host; an nbdfuse for
each shows it as a file.  A remote disk has a server of its own, and its URI in
place of a file; the last part of both, basename, is the name of the disk.
check () shows that flushes pass through, and that nothing else makes data
durable.

SPDX-License-Identifier: BSD-3-Clause
"""

import ctypes
import mmap
import os
import shutil
import subprocess
import threading

import nbd

from lab.array import Failure, until_up

from .server import Server

PAGE = 4096


class Store:
    """nr disks of that size; path[i] is the file, or URI, of disk i."""

    def __init__(self, folder, nr, size, remote=()):
        self.disks = os.path.join(folder, 'disks')
        self.log = open(os.path.join(folder, 'store.log'), 'wb')
        self.here = Server(self.disks, os.path.join(folder, 'store-sock'),
                           os.path.join(folder, 'store-control'), self.log)
        self.away = {}          # path -> server
        self.processes = []
        self.mounts = []
        self.closed = threading.Event()
        for d in self.disks, os.path.join(folder, 'at'):
            os.mkdir(d)
        self.path = [self._place(folder, i, i in remote) for i in range(nr)]
        for p in self.path:
            with open(self.file(p), 'wb') as f:
                f.truncate(size)

    def _place(self, folder, i, remote):
        name = 'disk-%02d' % i
        if not remote:
            return os.path.join(folder, 'mnt-%02d' % i, name)
        sock = os.path.join(folder, 'at', name)
        path = 'nbd+unix:///%s?socket=%s' % (name, sock)
        self.away[path] = Server(self.disks, sock, sock + '.control', self.log)
        return path

    def start(self):
        out = dict(stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        files = [p for p in self.path if p not in self.away]
        if files:
            self.here.start()
        for s in self.away.values():
            s.start()
        for p in files:
            os.mkdir(os.path.dirname(p))
            self.processes.append(subprocess.Popen(
                ['nbdfuse', p, 'nbd+unix:///%s?socket=%s' % (
                    os.path.basename(p), self.here.sock)], **out))
            self.mounts.append(os.path.dirname(p))
        for p, process in zip(files, self.processes):
            until_up('nbdfuse for a disk', process,
                     lambda: os.path.exists(p))
        if self.away:
            threading.Thread(target=self._revive, daemon=True).start()

    def _revive(self):
        while not self.closed.wait(0.05):
            for s in self.away.values():
                s.revive()

    def close(self):
        self.closed.set()
        unmount(self.mounts)
        for p in reversed(self.processes):
            p.terminate()
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.processes = []
        for s in self.here, *self.away.values():
            s.close()
        self.log.close()

    def file(self, path):
        """What is durable of this disk."""
        return os.path.join(self.disks, os.path.basename(path))

    # -- control --------------------------------------------------------

    def off(self, modes, seed, die=()):
        """modes: of each path; the power of those of this host fails in one
        moment, that of the others right after it, so stop what uses them
        before.  die: paths whose servers are gone, too."""
        here = {p: mode for p, mode in modes.items() if p not in self.away}
        if here:
            self.here.command('off', seed, *(
                '%s %s' % (mode, os.path.basename(p))
                for p, mode in here.items()))
        for i, (p, mode) in enumerate(modes.items()):
            if p in self.away:
                self.away[p].off(os.path.basename(p), mode, seed + i + 1,
                                 p in die)

    def on(self, paths):
        for p in paths:
            if p in self.away:
                self.away[p].on(os.path.basename(p))
        here = [os.path.basename(p) for p in paths if p not in self.away]
        if here:
            self.here.command('on', *here)

    def renew(self, path):
        """Another disk in its place, empty."""
        self.off({path: 'drop'}, 0)
        s = self.away.get(path, self.here)
        if s.is_there():
            s.command('blank', os.path.basename(path))
        else:
            size = os.path.getsize(self.file(path))
            with open(self.file(path), 'wb') as f:
                f.truncate(size)
        self.on([path])

    def delay(self, usec):
        for s in self.here, *self.away.values():
            s.delay(usec)

    def stats(self, path):
        """Since the start."""
        return dict(zip(('writes', 'flushes', 'unflushed', 'kept', 'dropped',
                         'torn'),
                        self.away.get(path, self.here).command(
                            'stats', os.path.basename(path))))

    def keep_copies(self, folder):
        """What is durable now, to look at later."""
        os.makedirs(folder, exist_ok=True)
        for p in self.path:
            shutil.copyfile(self.file(p),
                            os.path.join(folder, os.path.basename(p)))

    # -- do these disks forget, and only what they may? ------------------

    def check(self):
        """On disks that are blank, and then are so again."""
        files = [p for p in self.path if p not in self.away]
        if files:
            self._check_file(files[0])
            self.renew(files[0])
        for p in list(self.away)[:1]:
            self._check_server(p)
            self.renew(p)

    def _check_file(self, path):
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        try:
            self._check_flush(path, fd)
            self._check_torn(path, fd)
            self._check_punched(path, fd)
            self._check_fua(path, fd)
        finally:
            os.close(fd)

    def _check_server(self, path):
        """A server that is gone has lost what was not flushed, or not."""
        for mode, want in ('drop', b'a'), ('keep', b'b'):
            h = nbd.NBD()
            h.connect_uri(path)
            h.pwrite(b'a' * PAGE, 0)
            h.flush()
            h.pwrite(b'b' * PAGE, 0)
            self.off({path: mode}, 0, [path])
            try:
                h.pread(PAGE, 0)
                self._expect('a server is gone', False)
            except nbd.Error:
                pass
            self.on([path])
            h = nbd.NBD()
            h.connect_uri(path)
            self._expect('%s after a restart' % mode,
                         bytes(h.pread(PAGE, 0)) == want * PAGE)
            h.shutdown()

    def _expect(self, what, ok):
        if not ok:
            raise Failure('the disks: ' + what)

    def _check_flush(self, path, fd):
        for sync in os.fsync, os.fdatasync:
            before = self.stats(path)
            _write(fd, 0, b'a')
            now = self.stats(path)
            self._expect('a write is in memory alone',
                         now['unflushed'] == 1
                         and now['flushes'] == before['flushes'])
            sync(fd)
            now = self.stats(path)
            self._expect('%s is a flush' % sync.__name__,
                         now['unflushed'] == 0
                         and now['flushes'] == before['flushes'] + 1)
        _write(fd, 0, b'b')
        os.close(os.open(path, os.O_RDWR))
        self._expect('closing is no flush',
                     self.stats(path)['unflushed'] == 1)
        self.off({path: 'drop'}, 0)
        for call in (lambda: _read(fd, 0), lambda: os.fsync(fd),
                     lambda: _write(fd, 0, b'c')):
            self._expect('I/O without power fails', _fails(call))
        self.on([path])
        self._expect('a write that was not flushed is dropped',
                     _read(fd, 0) == b'a' * PAGE)

    def _check_torn(self, path, fd):
        """Some seed keeps a part of a write, and each sector is one of
        the two."""
        torn = False
        for seed in range(200):
            _write(fd, 0, b'a')
            os.fsync(fd)
            _write(fd, 0, b'b')
            self.off({path: 'some'}, seed)
            self.on([path])
            data = _read(fd, 0)
            sectors = {data[i:i + 512] for i in range(0, PAGE, 512)}
            self._expect('sectors are old or new',
                         sectors <= {b'a' * 512, b'b' * 512})
            if len(sectors) == 2:
                torn = True
                break
        self._expect('writes are torn', torn)

    def _check_punched(self, path, fd):
        _write(fd, 0, b'a')
        os.fsync(fd)
        if not _punch(fd, 0, PAGE):
            return              # a kernel that can't: nothing will be punched
        self._expect('a hole is zeroes', _read(fd, 0) == bytes(PAGE))
        self.off({path: 'drop'}, 0)
        self.on([path])
        self._expect('a hole that was not flushed is dropped',
                     _read(fd, 0) == b'a' * PAGE)

    def _check_fua(self, path, fd):
        """Not through nbdfuse, which has no such flag: that write is durable,
        and nothing older comes back in its place; what is beside it
        is not."""
        h = nbd.NBD()
        h.set_export_name(os.path.basename(path))
        h.connect_unix(self.here.sock)
        beside = set()
        for seed in range(20):
            _write(fd, 0, b'a' * 2)
            os.fsync(fd)
            _write(fd, 0, b'b' * 2)
            h.pwrite(b'c' * PAGE, 0, nbd.CMD_FLAG_FUA)
            self.off({path: 'some'}, seed)
            self.on([path])
            self._expect('a write with FUA is durable',
                         _read(fd, 0) == b'c' * PAGE)
            beside.update(_read(fd, PAGE))
        h.shutdown()
        self._expect('and makes nothing else durable', beside == {*b'ab'})


def unmount(folders):
    for d in folders:
        subprocess.run(['fusermount3', '-uz', d], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)


def _write(fd, off, pages):
    """A page of each of these bytes."""
    buf = mmap.mmap(-1, PAGE * len(pages))      # aligned, for O_DIRECT
    for byte in pages:
        buf.write(bytes([byte]) * PAGE)
    if os.pwritev(fd, [buf], off) != PAGE * len(pages):
        raise Failure('the disks: a short write')


def _read(fd, off):
    buf = mmap.mmap(-1, PAGE)
    os.preadv(fd, [buf], off)
    return bytes(buf)


def _punch(fd, off, length):
    """fallocate(1) would flush, too."""
    keep_size, punch_hole = 1, 2
    return ctypes.CDLL(None).fallocate(
        fd, keep_size | punch_hole, ctypes.c_int64(off),
        ctypes.c_int64(length)) == 0


def _fails(call):
    try:
        call()
    except OSError:
        return True
    return False
