#!/usr/bin/python3
"""gpuraid: random ends of what serves a mounted file system.

usage: tests/attach/mount-ends.py [--rounds N] [--seed S] [--fs TYPE,...]
                           [--with kernel|fuse] [-v]

In each round a new array is mounted and written.  Then one of these is killed,
or gets a signal: the server, the process that owns the device, nbdfuse, the
script that mounts, or that unmounts.  It is unmounted as a user would, and
mounted again.  All that fsync answered must be there.  All else must be there,
too, or its loss must have been announced: by an error to the writer, or by
scripts/mount with a line and exit status 1.

Prints a table; exit status 1 if a round was not as it must be, with its seed.
75: something did not end.  Run it as root, in a mount name space of its own
(tests/own-mounts.sh).

SPDX-License-Identifier: BSD-3-Clause
"""

import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../..')
OUT = os.environ.get('OUT', TOP)
MOUNT = os.path.join(TOP, 'scripts', 'mount')
GPURAID = os.path.join(OUT, 'gpuraid')
PLUGIN = os.path.join(OUT, 'nbdkit-gpuraid-plugin.so')
STILL = 120
LATE = 75
SIGNALS = signal.SIGKILL, signal.SIGTERM, signal.SIGINT


class Wrong(Exception):
    """A promise was not kept."""


class Late(Exception):
    """Something does not end, and that is all."""


def until(done, what):
    end = time.monotonic() + STILL
    while not done():
        if time.monotonic() > end:
            raise Late(f'{what}: not in time')
        time.sleep(0.02)


def read(path):
    try:
        with open(path) as f:
            return f.read().strip()
    except OSError:
        return ''


def content(seed, i):
    r = random.Random(f'{seed} {i}')
    return r.randbytes(r.randrange(1, 300000))


class Writer:
    """A process that writes file after file; each second one with fsync."""

    def __init__(self, folder, seed, stop):
        self.seed, self.stop = seed, stop
        self.read_end, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.read_end)
            try:
                self.write(folder, write_end)
            except OSError as e:
                os.write(write_end, b'error %d\n' % e.errno)
            os._exit(0)
        os.close(write_end)

    def write(self, folder, to):
        os.mkdir(folder)
        parent = os.open(folder, os.O_RDONLY)
        i = 0
        while not os.path.exists(self.stop):
            with open(os.path.join(folder, str(i)), 'wb') as f:
                f.write(content(self.seed, i))
                f.flush()
                if i % 2:
                    os.fsync(f.fileno())
            if i % 2:
                os.fsync(parent)
            os.write(to, b'%s %d\n' % (b'synced' if i % 2 else b'written', i))
            i += 1
        os.close(parent)

    def end(self):
        """What it wrote: synced, written, and whether it got an error."""
        with open(self.read_end) as f:
            said = [line.split() for line in f]
        os.waitpid(self.pid, 0)
        return ({int(n) for w, n in said if w == 'synced'},
                {int(n) for w, n in said if w == 'written'},
                any(w == 'error' for w, _ in said))


class Round:
    def __init__(self, seed, types, way, verbose):
        self.rng = random.Random(seed)
        self.seed, self.way, self.verbose = seed, way, verbose
        self.fs = self.rng.choice(types)
        self.folder = tempfile.mkdtemp(prefix='gpuraid-ends.', dir='/dev/shm')
        self.mnt, self.sock, self.stop = (
            os.path.join(self.folder, n) for n in ('mnt', 'sock', 'stop'))
        self.run = os.path.join(self.folder, 'run')
        self.env = dict(os.environ, GPURAID_RUN=self.run)
        self.members = [os.path.join(self.folder, f'm{i}') for i in range(3)]
        self.server = None
        self.announced = False
        self.said = []

    def say(self, text):
        self.said.append(text)
        if self.verbose:
            print('  ' + text, flush=True)

    # -- the server ------------------------------------------------------

    def serve(self):
        pid_file = os.path.join(self.folder, 'pid')
        for f in pid_file, self.sock:
            if os.path.exists(f):
                os.unlink(f)
        with open(os.path.join(self.folder, 'log'), 'a') as log:
            self.server = subprocess.Popen(
                ['nbdkit', '-f', '-U', self.sock, '-P', pid_file, PLUGIN,
                 *self.members], stdout=log, stderr=log)
        until(lambda: os.path.exists(pid_file)
              or self.server.poll() is not None, 'a start of the server')
        if self.server.poll() is not None:
            raise Wrong('the server does not start')

    def end_server(self, sig=signal.SIGTERM):
        self.server.send_signal(sig)
        until(lambda: self.server.poll() is not None, 'the end of the server')

    # -- the mount -------------------------------------------------------

    def start(self, *args):
        return subprocess.Popen([MOUNT, *args], env=self.env, text=True,
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def finish(self, p):
        try:
            text, _ = p.communicate(timeout=STILL)
        except subprocess.TimeoutExpired:
            p.kill()
            raise Late('scripts/mount does not end') from None
        self.say('mount %s: %d %s' % (' '.join(p.args[1:]), p.returncode,
                                      text.strip()))
        return p.returncode

    def mount(self, *options):
        code = self.finish(self.start('--with', self.way, *options, self.sock,
                                      self.mnt))
        if 'not all on the server' in self.said[-1]:
            self.announced = True
        return code

    def interrupt(self, p):
        """The script gets a signal at any time."""
        sig = self.rng.choice(SIGNALS)
        time.sleep(self.rng.random() ** 2 * 0.6)
        if p.poll() is None:
            self.say(f'{sig.name} to {" ".join(p.args[1:])}')
            p.send_signal(sig)
        return self.finish(p)

    def is_mounted(self):
        """Also where nothing there answers any more."""
        return f' {self.mnt} ' in read('/proc/self/mounts')

    def states(self):
        try:
            return os.listdir(os.path.join(self.run, 'attached'))
        except FileNotFoundError:
            return []

    def unmount(self):
        """As a user does that reads what it says."""
        for tries in range(20):
            code = self.finish(self.start('-u', self.mnt))
            if code and 'nothing is mounted' not in self.said[-1] and \
               'in use' not in self.said[-1]:
                self.announced = True
            if code and self.is_mounted() and 'not all could' in self.said[-1]:
                self.say('umount')
                subprocess.run(['umount', self.mnt])
            if not self.states():
                return
            time.sleep(0.2)
        raise Wrong('it is never detached')

    # -- the end ---------------------------------------------------------

    def pid_of(self, what):
        name, = self.states()
        if what == 'nbdfuse':
            return int(read(os.path.join(self.run, 'attached', name, 'pid')))
        found = subprocess.run(
            ['pgrep', '-f', f'gpuraid attach .*{self.mnt}'],
            stdout=subprocess.PIPE, text=True).stdout.split()
        return int(found[0])

    def disturb(self):
        """What it was; after some of them nothing may be lost at all."""
        kinds = ['none', 'server', 'owner', 'owner', 'unmount', 'unmount']
        if self.way == 'fuse':
            kinds += ['nbdfuse']
        kind = self.rng.choice(kinds)
        self.say(kind)
        if kind == 'server':
            self.end_server(signal.SIGKILL)
            if self.way == 'kernel':
                time.sleep(self.rng.random())
                self.serve()
        elif kind in ('owner', 'nbdfuse'):
            sig = self.rng.choice(SIGNALS)
            self.say(sig.name)
            os.kill(self.pid_of(kind), sig)
        return kind

    def compare(self, synced, written, error):
        lost = []
        for i in sorted(synced | written):
            try:
                with open(os.path.join(self.mnt, 'files', str(i)), 'rb') as f:
                    right = f.read() == content(self.seed, i)
            except OSError:
                right = False
            if not right:
                lost.append(i)
        if set(lost) & synced:
            raise Wrong(f'{len(set(lost) & synced)} files are lost that fsync '
                        'had answered')
        if lost and not self.announced and not error:
            raise Wrong(f'{len(lost)} files are lost without a word')
        return len(lost)

    def go(self):
        subprocess.run([GPURAID, 'create', 'k=2', 'm=1', 'size=320M',
                        *self.members], check=True, stdout=subprocess.DEVNULL)
        self.serve()
        if self.rng.random() < 0.3:
            self.interrupt(self.start(
                '--with', self.way, '--format', '--force', '--fs', self.fs,
                self.sock, self.mnt))
            self.unmount()
            self.announced = False
        if self.mount('--format', '--force', '--fs', self.fs):
            raise Wrong('it is not mounted')
        writer = Writer(os.path.join(self.mnt, 'files'), self.seed, self.stop)
        time.sleep(0.05 + self.rng.random() * 0.7)
        kind = self.disturb()
        time.sleep(self.rng.random() * 0.3)
        open(self.stop, 'w').close()
        synced, written, error = writer.end()
        if kind == 'unmount':
            self.interrupt(self.start('-u', self.mnt))
        if self.states():
            self.unmount()
        if self.server.poll() is None:
            self.end_server()
        self.serve()
        if self.mount():
            raise Wrong('it is not mounted again')
        lost = self.compare(synced, written, error)
        self.announced = False
        self.unmount()
        if self.announced:
            raise Wrong('the last mount -u says that something is wrong')
        self.end_server()
        return kind, len(synced), len(written), lost

    def clean_up(self):
        subprocess.run(['umount', '-l', self.mnt], stderr=subprocess.DEVNULL)
        for name in self.states():
            subprocess.run([GPURAID, 'detach', '--wait', '5', name],
                           env=dict(os.environ, GPURAID_RUNDIR=self.run),
                           stderr=subprocess.DEVNULL)
        if self.server and self.server.poll() is None:
            self.server.kill()
            self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('\n\n')[1][7:])
    parser.add_argument('--rounds', type=int, default=20)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--fs', default='ext4')
    parser.add_argument('--with', dest='way', default='fuse')
    parser.add_argument('-v', dest='verbose', action='store_true')
    args = parser.parse_args()
    table = collections.defaultdict(lambda: [0] * 4)
    for seed in range(args.seed, args.seed + args.rounds):
        r = Round(seed, args.fs.split(','), args.way, args.verbose)
        try:
            kind, *counts = r.go()
        except Wrong as e:
            print('\n'.join(['mount-ends: seed %d, %s: %s' % (seed, r.fs, e)]
                            + ['  ' + s for s in r.said]))
            print(read(os.path.join(r.folder, 'log')))
            return 1
        except Late as e:
            print(f'mount-ends: seed {seed}: {e}')
            return LATE
        finally:
            r.clean_up()
        for row in table[r.fs, kind], table['all', '']:
            for i, n in enumerate([1] + counts):
                row[i] += n
    print('| file system | ended | rounds | synced | others | of these lost, '
          'and said |\n|---|---|---:|---:|---:|---:|')
    for (fs, kind), row in sorted(table.items()):
        print('| %s | %s | %s |' % (fs, kind, ' | '.join(map(str, row))))
    return 0


sys.exit(main())
