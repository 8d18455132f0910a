#!/usr/bin/python3
# test-settle: what a killed server left in its members' caches is durable once
# they were opened again, for reading too: nothing that was read goes back in
# time when the power fails later.  A member that can't be flushed is missing.
#
# run-tests: no-sanitizer timeout=900
#
# SPDX-License-Identifier: BSD-3-Clause

import os
import shutil
import sys
import tempfile
import unittest

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
sys.path.insert(0, os.path.join(TOP, 'tests'))

import nbd                                              # noqa: E402
from lab.array import Array, MiB, until                 # noqa: E402
from powerfail.store import Store                       # noqa: E402

LEN = 256 * 1024


class Settle(unittest.TestCase):

    def setUp(self):
        if not os.access('/dev/fuse', os.W_OK):
            self.skipTest('no /dev/fuse')
        self.folder = tempfile.mkdtemp(prefix='gpuraid-settle.',
                                       dir='/dev/shm')
        self.addCleanup(shutil.rmtree, self.folder, True)

    def make(self):
        """1+1 without a journal, where what was written goes in place."""
        self.store = Store(self.folder, 2, 12 * MiB)
        self.addCleanup(self.store.close)
        self.store.start()
        self.array = a = Array(self.folder, 1, 1, size=4 * MiB)
        a.member = self.store.path
        a.create(consistency='none', checksum='none')
        self.addCleanup(self.end)

    def end(self):
        if self.array.server:
            self.array.server.kill()
            self.array.server.wait()

    def unflushed(self):
        return sum(self.store.stats(p)['unflushed'] for p in self.store.path)

    def kill_with_unflushed(self):
        """Written, in place, and not flushed; then the process dies."""
        h = nbd.NBD()
        h.connect_uri(self.array.uri)
        h.pwrite(b'a' * LEN, 0)
        h.flush()
        h.pwrite(b'b' * LEN, 0)
        h.pwrite(b'c' * MiB, 2 * MiB)
        until('something is not flushed', lambda: self.unflushed() > 0)
        self.array.kill()

    def read(self):
        h = nbd.NBD()
        h.connect_uri(self.array.uri)
        data = bytes(h.pread(LEN, 0)), bytes(h.pread(MiB, 2 * MiB))
        h.shutdown()
        return data

    def power_fails(self):
        self.store.off({p: 'drop' for p in self.store.path}, 1)
        self.store.on(self.store.path)

    def test_reader(self):
        self.make()
        self.array.start(self.array.member)
        self.kill_with_unflushed()
        self.array.start(self.array.member, flags=['-r'])
        self.assertEqual(self.unflushed(), 0)
        before = self.read()
        self.array.kill()
        self.power_fails()
        self.array.start(self.array.member, flags=['-r'])
        self.assertEqual(self.read(), before)

    def test_not_flushed(self):
        """Of one that answers reads, but no flush."""
        self.make()
        self.array.start(self.array.member)
        self.array.stop()
        self.store.here.command('flushes', 'fail')
        with self.assertRaises(Exception) as e:
            self.array.start(self.array.member, flags=['-r'])
        self.assertIn("can't be flushed", str(e.exception))




if __name__ == '__main__':
    unittest.main()
