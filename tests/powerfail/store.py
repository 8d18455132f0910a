"""gpuraid: members whose power can fail.

One nbdkit with volatile-plugin.so has all the disks; an nbdfuse for each
shows it as a file.  check () shows that flushes pass through, and that
nothing else makes data durable.

SPDX-License-Identifier: BSD-3-Clause
"""

import ctypes
import mmap
import os
import shutil
import socket
import subprocess

import nbd

from lab.array import SAN, Failure, wait_for

# Never with a sanitizer: that is for the array.
PLUGIN = os.path.realpath(os.path.join(
    not SAN and os.environ.get('B') or 'build', 'tests/volatile-plugin.so'))
PAGE = 4096


class Store:
    """nr disks of that size; path[i] is the file of disk i."""

    def __init__(self, folder, nr, size):
        self.folder = folder
        self.disks = os.path.join(folder, 'disks')
        self.sock = os.path.join(folder, 'store-sock')
        self.control = os.path.join(folder, 'store-control')
        self.processes = []
        self.mounts = []
        self.link = self.talk = None
        os.mkdir(self.disks)
        self.path = [os.path.join(folder, 'mnt-%02d' % i, 'disk-%02d' % i)
                     for i in range(nr)]
        for p in self.path:
            with open(self.file(p), 'wb') as f:
                f.truncate(size)

    def start(self):
        self.log = open(os.path.join(self.folder, 'store.log'), 'wb')
        out = dict(stdin=subprocess.DEVNULL, stdout=self.log,
                   stderr=self.log)
        self.processes.append(subprocess.Popen(
            ['nbdkit', '-f', '-U', self.sock, PLUGIN, 'dir=' + self.disks,
             'control=' + self.control], **out))
        if not wait_for(10, lambda: os.path.exists(self.sock)):
            raise Failure('nbdkit for the disks did not start')
        for p in self.path:
            os.mkdir(os.path.dirname(p))
            self.processes.append(subprocess.Popen(
                ['nbdfuse', p, 'nbd+unix:///%s?socket=%s' % (
                    os.path.basename(p), self.sock)], **out))
            self.mounts.append(os.path.dirname(p))
        if not wait_for(10, lambda: all(map(os.path.exists, self.path))):
            raise Failure('nbdfuse for the disks did not start')
        self.link = socket.socket(socket.AF_UNIX)
        self.link.connect(self.control)
        self.talk = self.link.makefile('rw')

    def close(self):
        if self.talk:
            self.talk.close()
            self.link.close()
        unmount(self.mounts)
        for p in reversed(self.processes):
            p.terminate()
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.processes = []
        self.log.close()

    def file(self, path):
        """What is durable of this disk."""
        return os.path.join(self.disks, os.path.basename(path))

    # -- control --------------------------------------------------------

    def command(self, *words):
        line = ' '.join(map(str, words))
        self.talk.write(line + '\n')
        self.talk.flush()
        answer = self.talk.readline().split()
        if answer[:1] != ['ok']:
            raise Failure('the disks: %s: %s' % (line, ' '.join(answer)))
        return [int(w) for w in answer[1:]]

    def off(self, modes, seed):
        """modes: of each path; the power of all fails in one moment."""
        self.command('off', seed, *(
            '%s %s' % (mode, os.path.basename(p))
            for p, mode in modes.items()))

    def on(self, paths):
        self.command('on', *map(os.path.basename, paths))

    def renew(self, path):
        """Another disk in its place, empty."""
        self.off({path: 'drop'}, 0)
        self.command('blank', os.path.basename(path))
        self.on([path])

    def delay(self, usec):
        self.command('delay', usec)

    def stats(self, path):
        """Since the start."""
        return dict(zip(('writes', 'flushes', 'unflushed', 'kept', 'dropped',
                         'torn'),
                        self.command('stats', os.path.basename(path))))

    def keep_copies(self, folder):
        """What is durable now, to look at later."""
        os.makedirs(folder, exist_ok=True)
        for p in self.path:
            shutil.copyfile(self.file(p),
                            os.path.join(folder, os.path.basename(p)))

    # -- do these disks forget, and only what they may? ------------------

    def check(self, path):
        """On a disk that is blank, and then is so again."""
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        try:
            self._check_flush(path, fd)
            self._check_torn(path, fd)
            self._check_punched(path, fd)
            self._check_fua(path, fd)
        finally:
            os.close(fd)
        self.renew(path)

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
        h.connect_unix(self.sock)
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
