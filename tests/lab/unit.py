"""gpuraid: a mounted file system, on a server that is started by the lines of
the unit file.

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import shlex
import subprocess
import time

from .array import (STILL, SLOW, Failure, MiB, Skipped, san_setup, until_up,
                    written)

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), '../..'))
UNIT = os.path.join(TOP, 'system', 'gpuraid@.service.in')
NAME = 'lab'


def unit_lines(bindir, libdir):
    """The commands of its [Service] section, by key, as lists of words;
    $MAINPID is left as it is."""
    lines, section = {}, None
    with open(UNIT) as f:
        for line in f:
            line = line.strip()
            if line.startswith('['):
                section = line
            if section == '[Service]' and line.startswith('Exec'):
                key, value = line.split('=', 1)
                lines[key] = [
                    w.replace('@BINDIR@', bindir).replace('@LIBDIR@', libdir)
                    .replace('%i', NAME) for w in shlex.split(value)]
    wrong = [w for words in lines.values() for w in words
             if '@' in w or '%' in w]
    if wrong or 'ExecStart' not in lines:
        raise Failure('%s: not understood: %s' % (UNIT, wrong or 'ExecStart'))
    return lines


class Rig:
    """begin, then write, kill, start and check as often as you like, end."""

    def __init__(self, lab):
        if os.geteuid():
            raise Skipped('not root: no mount')
        if not os.path.exists(UNIT):
            raise Skipped('no unit file: not in a source tree')
        self.kernel = os.path.exists('/dev/nbd0')
        if not self.kernel and not (os.access('/dev/fuse', os.W_OK) and
                                    os.path.exists('/dev/loop-control')):
            raise Skipped('no kernel module nbd, and no fuse with loop')
        self.lab = lab
        run, conf = (os.path.join(lab.dir, d) for d in ('run', 'conf'))
        self.env = dict(san_setup()[0], GPURAID_RUNDIR=run,
                        GPURAID_RUN=run, GPURAID_CONFIG_DIR=conf)
        self.array = a = lab.prepare(k=2, m=1, size=64 * MiB)
        self.env['GPURAID'] = a.command
        self.lines = unit_lines(os.path.dirname(a.command),
                                os.path.join(TOP, 'system'))
        os.mkdir(run)
        os.mkdir(conf)
        with open(os.path.join(conf, NAME + '.conf'), 'w') as f:
            f.write(''.join(line + '\n' for line in [
                'cache-mode=writethrough', *a.keys,
                *('member=' + m for m in a.member)]))
        a.sock = os.path.join(run, NAME + '.sock')
        a.control = os.path.join(run, NAME + '.control')
        self.mnt = os.path.join(lab.dir, 'mnt')
        self.proxy = None
        self.mounted = False
        lab.at_close.append(self.close)

    def begin(self):
        # Here, so that a lab without root does without this module.
        from mounted.files import Files
        self.array.create()
        self.start()
        self.start_proxy()
        self.mount('--format')
        self.stop_file = os.path.join(self.lab.dir, 'stop')
        self.files = Files(os.path.join(self.mnt, 'files'),
                           os.path.join(self.lab.dir, 'files.log'),
                           self.stop_file)

    def end(self):
        """Stop it by the unit's line, and look at what is on the members."""
        self.unmount()
        self.end_proxy()
        self.stop()
        self.array.audit()
        self.start()
        self.start_proxy()
        self.mount()
        self.check()
        self.unmount()
        self.end_proxy()
        self.stop()
        self.lab.say('%d durable changes of files are there'
                     % self.files.nr)

    def close(self):
        """At the end, whatever has happened."""
        if self.mounted and getattr(self, 'files', None) and self.files.pid:
            os.kill(self.files.pid, 9)
        self.end_proxy()
        if self.array.server:
            self.array.server.kill()
            self.array.server.wait()
            self.array.server = None
        if self.mounted:
            subprocess.run([self.script(), '-u', self.mnt], env=self.env,
                           stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)

    # -- the server -----------------------------------------------------

    def start(self):
        """As systemd does: ExecStart, then ExecStartPost."""
        a = self.array
        with open(a.log, 'ab') as log:
            a.server = subprocess.Popen(
                self.lines['ExecStart'], env=self.env, stdout=log,
                stderr=log, stdin=subprocess.DEVNULL)
        self.command(*(str(a.server.pid) if w == '$MAINPID' else w
                       for w in self.lines['ExecStartPost']))

    def stop(self):
        self.command(*self.lines['ExecStop'])
        rc = self.array.server.wait(STILL * SLOW)
        self.array.server = None
        if rc:
            raise Failure('the server ended with status %d' % rc)

    def kill(self):
        self.array.kill()

    def start_proxy(self):
        """It connects again when the server is back, as the kernel does."""
        if self.kernel:
            return
        sock, pid = (os.path.join(self.lab.dir, n)
                     for n in ('proxy', 'proxy.pid'))
        for path in sock, pid:
            if os.path.exists(path):
                os.unlink(path)
        with open(os.path.join(self.lab.dir, 'proxy.log'), 'ab') as log:
            self.proxy = subprocess.Popen(
                ['nbdkit', '-f', '-U', sock, '-P', pid, '--filter=retry', 'nbd',
                 'socket=' + self.array.sock, 'retries=%d' % (STILL * SLOW),
                 'retry-delay=1', 'retry-exponential=no'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until_up('nbdkit with the retry filter', self.proxy,
                 lambda: written(pid))

    def end_proxy(self):
        if self.proxy:
            self.proxy.terminate()
            try:
                self.proxy.wait(10)
            except subprocess.TimeoutExpired:
                self.proxy.kill()
                self.proxy.wait()
            self.proxy = None

    # -- the file system ------------------------------------------------

    def script(self):
        return os.path.join(TOP, 'scripts', 'mount')

    def command(self, *args):
        p = subprocess.run(args, text=True, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env=self.env, timeout=STILL * SLOW)
        if p.returncode:
            raise Failure('%s: status %d: %s' % (' '.join(args),
                                                 p.returncode, p.stdout))

    def mount(self, *options):
        self.mounted = True
        self.command(self.script(), '--with',
                     'kernel' if self.kernel else 'fuse', *options,
                     self.array.sock if self.kernel else
                     os.path.join(self.lab.dir, 'proxy'), self.mnt)

    def unmount(self):
        self.command(self.script(), '-u', self.mnt)
        self.mounted = False

    def write(self, seconds):
        """Begin to write; or go on, if writers are there.  They stay."""
        if self.files.pid is None:
            if os.path.exists(self.stop_file):
                os.unlink(self.stop_file)
            self.files.start(self.lab.rng.randrange(1 << 60))
        time.sleep(seconds)

    def check(self):
        """Let the writers end, and compare all files."""
        if self.files.pid is not None:
            open(self.stop_file, 'w').close()
            self.files.end(STILL * SLOW)
        if self.files.error:
            raise Failure('a writer got error %d' % self.files.error)
        self.files.check()
