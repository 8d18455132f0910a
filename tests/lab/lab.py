"""gpuraid: shared by the scenarios of the fault lab.

An array with a workload on it; stop, crash and start, which update the
model; and members that can be made to fail.  The scenarios
themselves are in scenarios.py.

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

from . import evidence
from .array import (TRUST, Array, Failure, MiB, Refused, Skipped, until,
                    until_up, written)
from .workload import Workload


# At least how long a rebuild onto slow_target takes, in seconds.
SLOW_REBUILD = 1.5


class FuseMember:
    """A member file whose I/O can be made to fail, hang and lag: nbdkit's
    filters over a file, shown as a file by nbdfuse."""

    def __init__(self, lab, name, size, rdelay=0, wdelay=0, rate='100%',
                 bits_per_second=1 << 40):
        self.dir = os.path.join(lab.dir, name)
        os.makedirs(os.path.join(self.dir, 'mnt'))
        self.path = os.path.join(self.dir, 'mnt', 'member')
        self.armed = os.path.join(self.dir, 'armed')
        store = os.path.join(self.dir, 'store')
        sock, pid = (os.path.join(self.dir, n) for n in ('sock', 'pid'))
        with open(store, 'wb') as f:
            f.truncate(size)
        self.log = open(os.path.join(self.dir, 'log'), 'wb')
        out = dict(stdin=subprocess.DEVNULL, stdout=self.log,
                   stderr=self.log)
        self.speed = os.path.join(self.dir, 'speed')
        with open(self.speed, 'w') as f:
            f.write('%d' % bits_per_second)
        self.nbdkit = subprocess.Popen(
            ['nbdkit', '-f', '-U', sock, '-P', pid, '--filter=error',
             '--filter=delay', '--filter=rate', 'file', store, 'rate-file=' + self.speed,
             'burstiness=0.1', 'error=EIO', 'error-rate=' + rate,
             'error-file=' + self.armed, 'rdelay=%dms' % rdelay,
             'wdelay=%dms' % wdelay], **out)
        lab.fuse_members.append(self)
        lab.array.file_of[self.path] = store
        self.fuse = None
        until_up('nbdkit for a member', self.nbdkit, lambda: written(pid))
        self.fuse = subprocess.Popen(
            ['nbdfuse', self.path, 'nbd+unix:///?socket=' + sock], **out)
        until_up('nbdfuse for a member', self.fuse,
                 lambda: os.path.exists(self.path))

    def arm(self):
        open(self.armed, 'wb').close()

    def disarm(self):
        if os.path.exists(self.armed):
            os.unlink(self.armed)

    def fast(self):
        """Run at full speed from now on."""
        with open(self.speed + '.new', 'w') as f:
            f.write('%d' % (1 << 40))
        os.rename(self.speed + '.new', self.speed)

    def hang(self):
        self.nbdkit.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.nbdkit.send_signal(signal.SIGCONT)

    def pull(self):
        """Like a disk that is pulled out: every call fails from now on."""
        self.nbdkit.kill()
        self.nbdkit.wait()

    def close(self):
        if self.nbdkit.poll() is None:
            self.go_on()
        subprocess.run(['fusermount3', '-uz', os.path.dirname(self.path)],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for p in filter(None, (self.fuse, self.nbdkit)):
            try:
                p.terminate()
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.log.close()


class Lab:
    """One run of one scenario."""

    def __init__(self, seed, seconds, verbose, parent='/dev/shm',
                 code=None, keys=()):
        self.seed = seed
        self.keys = keys        # more of the plugin
        self.rng = random.Random(seed)
        # Not from rng: the rest of a seed is the same with any code.
        self.code = random.Random('code %d' % seed).choice(
            [c for c in (('rs', 8), ('crs', 4), ('crs', 8))
             if code in (None, c[0])])
        self.seconds = seconds  # of workload between two events
        self.verbose = verbose
        self.dir = tempfile.mkdtemp(prefix='gpuraid-lab.', dir=parent)
        self.began = time.monotonic()
        self.said = []
        self.fuse_members = []
        self.at_close = []      # calls, the newest first
        self.array = self.load = None

    def keep(self, name):
        """After a failure: see evidence.keep."""
        if self.load:
            self.load.abandon()
        return evidence.keep(
            name, self.dir, self.array, self.said,
            self.load and self.load.about_wrong(),
            self.load and self.load.history)

    def say(self, text):
        if self.load:
            self.load.history.event(text)
        line = '%6.2f s  %s' % (time.monotonic() - self.began, text)
        self.said.append(line)
        if self.verbose:
            print('    ' + line, flush=True)

    def close(self):
        if self.load:
            self.load.abandon()
        for call in reversed(self.at_close):
            call()
        for m in self.fuse_members:
            m.disarm()
            if m.nbdkit.poll() is None:
                m.go_on()
        if self.array and self.array.server:
            self.array.server.kill()
            self.array.server.wait()
        for m in self.fuse_members:
            m.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    # -- begin ----------------------------------------------------------

    def prepare(self, k=None, m=None, size=None, chunk=None):
        """An array of files, not created yet."""
        if k is None:
            k, m = self.rng.choice(((4, 2), (4, 2), (5, 2), (4, 3), (6, 3)))
        chunk = chunk or self.rng.choice((4096, 16384, 65536))
        size = size or self.rng.randrange(8 * MiB, 14 * MiB, 4096)
        code, w = self.code
        if k + m > 16:
            w = 8
        self.array = Array(self.dir, k, m, chunk, size, say=self.say,
                           code=code, w=w, keys=self.keys,
                           trust=self.rng.choice(TRUST))
        self.say('%d+%d, chunk %d, %d bytes, %s w %d, consistency %s, '
                 'checksum %s' % (k, m, chunk, size, code, w,
                                  *self.array.trust))
        return self.array

    def fuse_member(self, name, **how):
        return FuseMember(self, name, self.array.member_size, **how)

    def mount_tmpfs(self, folder, size):
        """A file system of that size, for root."""
        os.mkdir(folder)
        r = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%d' % size,
                            'tmpfs', folder], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if r.returncode:
            raise Skipped('mount: ' + r.stdout.strip())
        self.at_close.append(lambda: subprocess.run(
            ['umount', '-l', folder], stderr=subprocess.DEVNULL))

    def slow_target(self):
        """A target for a rebuild that is slow until fast ()."""
        data_len = self.array.size // self.array.k
        return self.fuse_member('slow', bits_per_second=int(
            8 * data_len / SLOW_REBUILD))

    def launch(self):
        """Create, start, and let the workload begin."""
        self.array.create()
        self.array.start()
        self.load = Workload(self.array, self.seed)
        self.load.start()
        self.run()

    def begin(self, **geometry):
        self.prepare(**geometry)
        self.launch()
        return self.array

    # -- go on ----------------------------------------------------------

    def run(self, times=1):
        self.load.run_for(self.seconds * times)

    def verify(self):
        """Check every byte without load; then continue the load."""
        self.load.pause()
        self.load.read_all()
        self.load.resume()

    def sample(self, nr, without=()):
        return self.rng.sample([s for s in range(self.array.n)
                                if s not in without], nr)

    def refused(self, what, call, *args, **keys):
        """The call must be refused; the reason, to report."""
        try:
            call(*args, **keys)
        except Refused as e:
            text = str(e)
            if not text:
                raise Failure('%s: refused without a word' % what)
            self.say('%s: refused: %s' % (what, text.splitlines()[-1]))
            return text
        raise Failure('%s: not refused' % what)

    def wait_healthy(self):
        self.array.wait_healthy()
        self.wait_resync()
        self.say('healthy')

    def wait_resync(self):
        self.array.until_resynced()

    def answers(self, what):
        """Reads and writes are answered from now on."""
        before = dict(self.load.nr)

        def nr_answered():
            return [min(20, self.load.nr[kind] - before[kind])
                    for kind in ('read', 'write')]

        def are_answered():
            self.load.raise_wrong()
            return nr_answered() == [20, 20]
        until(what + ': reads and writes are answered', are_answered,
              nr_answered)

    def until_rebuilding(self, share):
        """Wait until about that share of a slow rebuild is done: it moves
        in windows.  False: it is over."""
        end = time.monotonic() + share * SLOW_REBUILD
        while True:
            rebuild = self.array.status()['rebuild']
            if rebuild is None or time.monotonic() > end or \
               rebuild['done'] >= share * rebuild['total']:
                break
            time.sleep(0.01)
        self.say('rebuild: %s' % ('over' if rebuild is None else '%d of %d' % (
            rebuild['done'], rebuild['total'])))
        return rebuild is not None

    def readd(self, slots):
        """Again and again: it is refused as long as one is not there."""
        a = self.array

        def is_back(slot):
            a.gpuraid('readd', a.control, slot, good=(0, 1))
            return a.states()[slot] != 'failed'
        for s in slots:
            until('%d is taken again' % s, lambda: is_back(s))

    # -- stop and start -------------------------------------------------

    def halt(self, flush=True):
        """A clean end of the server."""
        self.load.pause()
        if flush:
            self.load.flush()
        self.load.disconnect()
        self.array.stop()

    def start(self, members=None, **keys):
        """After halt: read all, then continue the load."""
        self.array.start(members, **keys)
        self.go_on()

    def go_on(self, pin=False):
        self.load.connect()
        self.load.read_all(pin)
        self.load.resume()

    def crash(self):
        """kill -9 under load: the blocks not flushed, by number."""
        self.load.expect_crash = True
        self.array.kill()
        self.load.pause()
        self.load.expect_crash = False
        self.load.disconnect()
        blocks = self.load.model.crash()
        self.say('kill -9 with %d blocks not flushed' % len(blocks))
        return blocks

    def start_unclean(self, blocks, absent, members=None):
        """After a crash with these slots not active.  A start is refused
        if rows may have lost them, unless it is forced; then they may
        hold anything, but no other data may be lost."""
        try:
            self.array.start(members)
            self.say('starts: nothing was in flight')
        except Refused as e:
            text = str(e)
            if 'force' not in text:
                raise Failure('refused, but no word of force: ' + text)
            self.say('refused, as it must be: ' + text.splitlines()[-1])
            self.array.start(members, degraded='force')
            self.say('starts with degraded=force')
            self.load.model.lose(self.array, blocks, absent)
        self.go_on(pin=True)

    def finish(self):
        """Check the stopped members, and again through a new server."""
        self.wait_resync()
        absent = {s for s, state in enumerate(self.array.states())
                  if state != 'active'}
        self.halt()
        self.array.audit(skip=absent)
        self.array.start()
        self.load.connect()
        self.load.read_all()
        self.load.stop()
        self.array.stop()
        self.say('every byte and every parity block is right')
