"""gpuraid: a file system on an array that lacks m members, and kill -9.

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import random
import shutil
import subprocess
import tempfile
import time

from lab.again import kill_early, start_again
from lab.array import SLOW, Array, Failure, MiB

from .files import Files

GEOMETRIES = (4, 2), (4, 2), (2, 1), (3, 3), (10, 4)
CLEAN = '0 blocks were wrong, 0 of them were repaired'
FSCK_EVERY = 5


class Rig:
    """lost: slots without their members.  count: for the table."""

    def __init__(self, seed, parent='/dev/shm', verbose=False, geometry=None,
                 keys=()):
        self.verbose = verbose
        self.rng = r = random.Random(seed)
        self.seed = seed
        self.began = time.monotonic()
        self.said = []
        self.count = dict(kills=0, starts=0, changes=0, checks=0, fscks=0)
        self.folder = tempfile.mkdtemp(prefix='gpuraid-mounted.', dir=parent)
        self.mnt = os.path.join(self.folder, 'mnt')
        self.env = dict(os.environ, GPURAID_RUN=os.path.join(self.folder,
                                                             'run'))
        self.mounted = False
        self.lost = []
        k, m = geometry or r.choice(GEOMETRIES)
        chunk = r.choice((4096, 16384, 65536))
        ring = r.choice((4, 4, 1)) * MiB
        size = 64 * MiB
        self.array = Array(self.folder, k, m, chunk, size, say=self.say,
                           member_size=size // k + chunk + ring + 5 * MiB,
                           keys=['cache=16M', *keys])
        self.keys = {'consistency': 'journal', 'checksum': 'crc32c',
                     'journal-size': ring}
        stop = os.path.join(self.folder, 'stop')
        self.stop_file = stop
        self.files = [Files(os.path.join(self.mnt, 'w%d' % i),
                            os.path.join(self.folder, 'log-%d' % i), stop)
                      for i in range(r.choice((1, 2, 3)))]
        self.say('%d+%d, chunk %d, ring %d, %d writers' % (
            k, m, chunk, ring, len(self.files)))

    def say(self, text):
        line = '%7.2f s  %s' % (time.monotonic() - self.began, text)
        self.said.append(line)
        if self.verbose:
            print('    ' + line, flush=True)

    def close(self, keep=False):
        for f in self.files:
            if f.pid:
                os.kill(f.pid, 9)
        if self.array.server:
            self.array.server.kill()
            self.array.server.wait()
        for f in self.files:
            if f.pid:
                os.waitpid(f.pid, 0)
        if self.mounted:
            self.unmount(check=False, dead=True)
        if keep:
            with open(os.path.join(self.folder, 'said'), 'w') as f:
                f.write('\n'.join(self.said) + '\n')
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- the file system ------------------------------------------------

    def command(self, *args, check=True, seconds=120):
        p = subprocess.run(args, text=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env=self.env, timeout=seconds * SLOW)
        if check and p.returncode:
            raise Failure('%s: status %d: %s' % (' '.join(args),
                                                 p.returncode, p.stdout))
        return p

    def mount(self, *options):
        self.mounted = True
        self.command('scripts/mount', '--with', 'fuse', *options,
                     self.array.sock, self.mnt)

    def unmount(self, check=True, dead=False):
        if dead:                # else -u says that not all can be written
            self.command('umount', self.mnt, check=check)
        # It says that something is lost, or not: the server may have had all.
        self.command('scripts/mount', '-u', self.mnt,
                     check=check and not dead)
        self.mounted = False

    def check_files(self):
        for f in self.files:
            f.check()
        self.command('sync', '-f', self.mnt)
        self.count['checks'] += 1

    def fsck(self):
        """Unmounted: a copy of all of it."""
        image = os.path.join(self.folder, 'image')
        try:
            self.command('nbdcopy', self.array.uri, image)
            self.command('fsck.ext4', '-fn', image)
            self.count['fscks'] += 1
        finally:
            if os.path.exists(image):
                os.unlink(image)

    # -- a run ----------------------------------------------------------

    def run(self, kills):
        a = self.array
        a.create(**self.keys)
        self.start()
        self.mount('--format')
        self.write_for(0.3)
        left = kills
        while left > 0:
            nr = min(left, self.rng.choice((5, 10, 20)))
            self.lose()
            for _ in range(nr):
                self.round()
            self.get_back()
            left -= nr
        self.finish()

    def start(self):
        """Never by force."""
        start_again(self.array)
        self.count['starts'] += 1

    def write_for(self, seconds):
        """And then all of it is durable."""
        self.start_writers()
        time.sleep(seconds * SLOW)
        self.stop_writers()

    def start_writers(self):
        if os.path.exists(self.stop_file):
            os.unlink(self.stop_file)
        for f in self.files:
            f.start(self.rng.randrange(1 << 60))

    def stop_writers(self):
        open(self.stop_file, 'w').close()
        for f in self.files:
            f.end(60 * SLOW)
            if f.error:
                raise Failure('a writer got error %d' % f.error)
            if f.begun:
                raise Failure('a writer ended early: %s' % f.begun)

    # -- members --------------------------------------------------------

    def lose(self):
        """m of them, by command, or because their files are gone."""
        a, r = self.array, self.rng
        self.lost = r.sample(range(a.n), a.m)
        away = self.lost[:r.randint(0, min(a.m, a.quorum_missing(a.n)))]
        self.say('lost: %s, of which %s are moved away' % (self.lost, away))
        self.away = away
        if r.random() < 0.5:
            self.start_writers()
        for s in self.lost:
            if s not in away:
                a.fail(s)
        if any(f.pid for f in self.files):
            self.stop_writers()
        if away:
            self.unmount()
            a.stop()
            for s in away:
                os.rename(a.member[s], a.member[s] + '.away')
            self.start()
            self.mount()

    def get_back(self):
        """Rebuilt while files are written, with a kill in some rebuilds."""
        a, r = self.array, self.rng
        back = [s for s in self.away if r.random() < 0.7]
        if back:
            self.unmount()
            a.stop()
            for s in back:
                os.rename(a.member[s] + '.away', a.member[s])
            self.start()
            self.mount()
        self.replace(back)
        if r.random() < 0.5:
            self.start_writers()
            time.sleep(r.random() * 0.3)
            self.kill()
            self.start_again()
            a.wait()
            self.replace(back)
        self.write_for(0.2)
        a.wait_healthy()
        self.lost, self.away = [], []
        self.say('healthy')

    def replace(self, back):
        a = self.array
        for s in self.lost:
            if s not in back and a.states()[s] not in ('active',
                                                       'rebuilding'):
                old = a.replace(s)
                for path in (old, old + '.away'):
                    if os.path.exists(path):
                        os.unlink(path)

    # -- kills ----------------------------------------------------------

    def round(self):
        r = self.rng
        self.start_writers()
        time.sleep(r.choice((0.05, 0.3, 0.8)) * r.random() * SLOW)
        self.kill()
        while r.random() < 0.25:
            self.array.launch()
            time.sleep(0.2 * r.random())
            kill_early(self.array)
            self.count['kills'] += 1
        self.start_again()

    def kill(self):
        killed = time.monotonic_ns()
        self.array.kill()
        self.count['kills'] += 1
        for f in self.files:
            before = f.nr
            f.end(120 * SLOW, killed)
            self.count['changes'] += f.nr - before
        self.unmount(dead=True)

    def start_again(self):
        self.start()
        self.mount()
        self.check_files()
        self.say('kill %d: all is right' % self.count['kills'])
        if self.count['kills'] % FSCK_EVERY == 0:
            self.unmount()
            self.fsck()
            self.mount()

    def finish(self):
        a = self.array
        a.gpuraid('scrub', a.control)
        a.wait_healthy()
        last = a.status()['last_scrub']
        if last['found'] or last['lost_rows'] or last['unlocated_rows']:
            raise Failure('the scrub found: %s' % last)
        self.unmount()
        self.fsck()
        a.stop()
        said = self.command(a.command, 'check', *a.member, check=False).stdout
        if CLEAN not in said.splitlines():
            raise Failure('check: ' + said)
        self.start()
        self.mount()
        for f in self.files:
            f.begun = {}
        self.check_files()
        self.unmount()
        a.stop()
