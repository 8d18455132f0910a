"""gpuraid: an array of files and its server, as the labs drive them.

Starts and ends the server, speaks to it with the gpuraid command, looks
at members from outside.  The data may be anything.

SPDX-License-Identifier: BSD-3-Clause
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

from . import gf

MiB = 1 << 20
BLOCK = 4096

OUT = os.path.realpath(os.environ.get('OUT', '.'))
SAN = os.environ.get('SAN', '')
# A sanitizer build is slower: more patience.
SLOW = 4 if SAN else 1
STILL = 120             # seconds without any progress: see until
LOOKS = 200             # and as often it was looked
LATE = 75               # exit status: Late, and nothing else


class Failure(Exception):
    """A check failed: the line for the report."""


class Late(Failure):
    """Nothing moves any more, and that is all that is wrong.  It may be the
    fault of a machine with other work."""


class Skipped(Exception):
    """It can't be done on this machine: why."""


class Refused(Exception):
    """A command or a start was refused; the text is its output."""


def _gcc_file(name):
    return subprocess.run(['gcc', '-print-file-name=' + name], text=True,
                          stdout=subprocess.PIPE, check=True).stdout.strip()


def san_setup():
    """What to add to nbdkit's environment and flags: see functions.sh."""
    env = dict(os.environ)
    flags = []
    lib = ('libasan.so' if 'address' in SAN else
           'libtsan.so' if 'thread' in SAN else None)
    if lib:
        # tests/preload/first-malloc.c says why there are two.
        env['LD_PRELOAD'] = ' '.join([
            _gcc_file(lib),
            os.path.join(os.path.realpath(os.environ.get('B') or 'build'),
                         'tests/first-malloc.so')])
    if 'thread' in SAN:
        flags = ['-D', 'gpuraid.loop=2']
    env['ASAN_OPTIONS'] = 'detect_leaks=0:' + env.get('ASAN_OPTIONS', '')
    env['TSAN_OPTIONS'] = 'exitcode=66:' + env.get('TSAN_OPTIONS', '')
    return env, flags


def end_cleanly():
    """Let a time-out's SIGTERM run what is in "finally", as ^C does."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def until(what, done, moves=lambda: None):
    """Wait until done (), however long it takes, as long as moves () changes.
    what is said to be missing when it does not."""
    last, since, looks = moves(), time.monotonic(), 0
    while not done():
        now = moves()
        if now != last:
            last, since, looks = now, time.monotonic(), 0
        elif looks > LOOKS and time.monotonic() > since + STILL:
            raise Late('%s: nothing moves for %d s%s' % (
                what, STILL, '' if now is None else ': %s' % (now,)))
        looks += 1
        time.sleep(0.02)


def until_up(what, process, is_up):
    """Wait for what a process does that was just started, while it lives."""
    until(what + ' starts',
          lambda: is_up() or process.poll() is not None)
    if not is_up():
        raise Failure('%s ended with status %d' % (what, process.poll()))


def written(path):
    """nbdkit writes its pid file when it listens."""
    return os.path.exists(path) and os.path.getsize(path) > 0


def progress(status):
    """What changes with an array's state, and with no request."""
    return (status['state'], status['reasons'], status['epoch'],
            [(e['slot'], e['state'], e['no_connection'], e['no_answer'])
             for e in status['members']],
            {kind: status[kind] and status[kind]['done']
             for kind in ('rebuild', 'resync', 'scrub', 'grow')})


# consistency=, checksum=
TRUST = (('journal', 'crc32c'), ('journal', 'none'), ('none', 'none'),
         ('none', 'crc32c'))


class Array:
    """member[slot] is the path that now holds that slot.

    out is the folder of the plugin and the command.
    """

    def __init__(self, folder, k, m, chunk=65536, size=None,
                 member_size=None, say=lambda s: None, code='rs', w=None,
                 keys=(), trust=None, out=OUT):
        self.folder = folder
        self.plugin = os.path.join(out, 'nbdkit-gpuraid-plugin.so')
        self.command = os.path.join(out, 'gpuraid')
        self.code, self.w = code, w     # w: None until created, or given
        self.k, self.m, self.chunk = k, m, chunk
        self.n = k + m
        self.rotating = k + m   # slots; parity that was added does not rotate
        if member_size is None:
            stripes = -(-size // (k * chunk))
            # The rest: journal, checksum table, bitmap, superblocks.
            member_size = stripes * chunk * 50 // 49 + 4 * chunk + 6 * MiB
        self.member_size = member_size
        self.want_size = size
        self.size = None
        self.member = [os.path.join(folder, 'member-%02d.img' % i)
                       for i in range(self.n)]
        self.file_of = {}       # behind members that are URIs, or in FUSE
        self.wrong_at = None    # byte of the export whose row does not fit
        self.last_status = None
        self.nr_new = 0
        self.sock = os.path.join(folder, 'sock')
        self.control = os.path.join(folder, 'control')
        self.pidfile = os.path.join(folder, 'pid')
        self.log = os.path.join(folder, 'nbdkit.log')
        self.server = None
        self.say = say
        self.trust = trust      # one of TRUST, or None: the defaults
        self.keys = list(keys)  # more keys of the plugin, "coder=cuda"
        self.flags = []         # more flags of nbdkit
        self.env = None         # of the command, if not ours

    @property
    def uri(self):
        return 'nbd+unix:///?socket=' + self.sock

    # -- the command ----------------------------------------------------

    def gpuraid(self, *args, timeout=STILL, good=(0,)):
        p = self._begin(*args)
        try:
            return self._end(p, good, *p.communicate(timeout=timeout * SLOW))
        except subprocess.TimeoutExpired:
            raise Late('gpuraid %s: not back after %d s' % (
                args[0], timeout * SLOW))
        finally:
            self._abandon(p)

    def _begin(self, *args):
        return subprocess.Popen([self.command, *map(str, args)], text=True,
                                env=self.env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def _end(self, p, good, out, err):
        if p.returncode < 0 or 'Sanitizer' in err:
            raise Failure('gpuraid %s: died with status %d: %s' %
                          (p.args[1], p.returncode, err[-2000:]))
        if p.returncode not in good:
            raise Refused(err.strip() or 'status %d' % p.returncode)
        return out

    def _abandon(self, p):
        if p.poll() is None:
            p.kill()
            p.communicate()

    def create(self, **keys):
        for path in self.member:
            if path not in self.file_of and not os.path.exists(path):
                with open(path, 'wb') as f:
                    f.truncate(self.member_size)
        keys = dict(k=self.k, m=self.m, chunk=self.chunk, **keys)
        if self.code != 'rs':
            keys['code'] = self.code
            if self.w is not None:
                keys['w'] = self.w
        if self.want_size is not None:
            keys['size'] = self.want_size
        if self.trust is not None:
            keys['consistency'], keys['checksum'] = self.trust
        self.gpuraid('create', *('%s=%s' % kv for kv in keys.items()),
                     *self.member)
        info = self.examine(self.member[0])
        self.size, self.w = info['size'], info['w']
        self.data_off = info['data_off']

    def examine(self, path):
        return json.loads(self.gpuraid('examine', '--json', path))[0]

    def status(self):
        return json.loads(self.gpuraid('status', '--json', self.control,
                                       good=(0, 1, 2)))

    def states(self):
        """The state of each slot's own entry."""
        return [e['state'] for e in self.status()['members'][:self.n]]

    def fail(self, which):
        self.say('fail %s' % which)
        self.gpuraid('fail', self.control, which)

    def new_path(self):
        self.nr_new += 1
        return os.path.join(self.folder, 'new-%02d.img' % self.nr_new)

    def replace(self, slot, new=None, force=False):
        """By slot; the new path stands in member[slot] from now on."""
        new = new or self.new_path()
        self.say('replace %d by %s' % (slot, os.path.basename(new)))
        self.gpuraid('replace', *(['--force'] if force else []),
                     self.control, slot, new)
        old, self.member[slot] = self.member[slot], new
        return old

    def until(self, want, what):
        """Wait until want (status): that status.  It is asked for over one
        connection, as long as anything of progress () changes."""
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(self.control)
            link.settimeout(STILL * SLOW)
            with link.makefile('rw') as talk:
                until(what, lambda: want(self._ask(talk)),
                      lambda: self.last_status and progress(self.last_status))
        return self.last_status

    def _ask(self, talk):
        try:
            talk.write('{"command": "status"}\n')
            talk.flush()
            reply = json.loads(talk.readline())
        except socket.timeout:
            raise Late('the server does not say its status')
        except (OSError, ValueError):
            raise Failure('the server is gone, no status')
        self.last_status = reply['status']
        return self.last_status

    def until_state(self, slot, state, what):
        return self.until(
            lambda st: st['members'][slot]['state'] == state, what)

    def until_resynced(self):
        """After an unclean start the parity of open regions is computed again."""
        self.until(lambda st: not st['resync'], 'the resync ends')

    def logged(self, text, nr=1):
        """Wait for the nr-th line with that: a thread of its own writes them,
        so a state may be seen before."""
        until('"%s" in the log' % text, lambda: self.nr_logged(text) >= nr,
              lambda: os.path.getsize(self.log))

    def nr_logged(self, text):
        with open(self.log, errors='replace') as f:
            return f.read().count(text)

    def wait(self):
        """True: no work is left and the array is healthy."""
        p = self._begin('wait', self.control)
        try:
            self.until(lambda st: p.poll() is not None, 'gpuraid wait ends')
            self._end(p, (0,), *p.communicate())
            return True
        except Refused:
            return False
        finally:
            self._abandon(p)

    def wait_healthy(self):
        if not self.wait():
            raise Failure('not healthy after wait: %s' % self.states())

    # -- the server -----------------------------------------------------

    def launch(self, members=None, flags=(), **keys):
        """A server that may not be up yet."""
        members = self.member if members is None else members
        env, san_flags = san_setup()
        for f in (self.sock, self.pidfile):
            if os.path.exists(f):
                os.unlink(f)
        with open(self.log, 'ab') as log:
            self.log_at = log.tell()
            self.server = subprocess.Popen(
                ['nbdkit', '-f', '-U', self.sock, '-P', self.pidfile,
                 *san_flags, *self.flags, *flags, self.plugin,
                 'control=' + self.control,
                 *self.keys,
                 *('%s=%s' % (k.replace('_', '-'), v)
                   for k, v in keys.items()), *members],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)

    def start(self, members=None, flags=(), **keys):
        """Serve; Refused if it will not.  members: paths."""
        self.launch(members, flags, **keys)
        until('the server is up or gone', lambda: written(self.pidfile)
              or self.server.poll() is not None,
              lambda: os.path.getsize(self.log))
        rc = self.server.poll()
        with open(self.log, errors='replace') as log:
            log.seek(self.log_at)
            self.words = log.read().strip()
        if rc is not None:
            self.server = None
            if rc < 0 or rc == 66 or 'Sanitizer' in self.words:
                raise Failure('the server died with %d when starting: %s'
                              % (rc, self.words[-2000:]))
            raise Refused(self.words)

    def stop(self):
        """SIGTERM; every client has left."""
        self.server.send_signal(signal.SIGTERM)
        try:
            rc = self.server.wait(STILL * SLOW)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Late('the server did not end at SIGTERM')
        self.server = None
        if rc != 0:
            raise Failure('the server ended with status %d: %s'
                          % (rc, self.last_words()))

    def kill(self):
        """SIGKILL; but first, it must still have been there."""
        if self.server is None:
            return
        rc = self.server.poll()
        self.server.kill()
        self.server.wait()
        self.server = None
        if rc is not None:
            raise Failure('the server had ended with status %d: %s'
                          % (rc, self.last_words()))

    def last_words(self):
        with open(self.log, errors='replace') as log:
            return log.read()[-3000:]

    # -- from outside ---------------------------------------------------

    def quorum_missing(self, active, others=0, m=None):
        """How many of the active members may be missing, while this number of
        others (for example failed ones) is present.  m: if another one."""
        need = max(self.k, active - self.k + 1)
        if (self.m if m is None else m) >= self.k:
            # More than k must be present, unless there are no more.
            need = max(need, min(active, self.k + 1 - others))
        return active - need

    def slot_of(self, stripe, role):
        if role >= self.rotating:
            return role
        return gf.slot_of(self.k, self.rotating - self.k, stripe, role)

    def audit(self, skip=()):
        """Stopped: is every stripe a code word?  skip: slots left out."""
        files = {}
        members = [p for s, p in enumerate(self.member) if s not in skip]
        info = self.examine(members[0])
        if info['checksum'] != 'none':
            # What lies in rows that were trimmed does not count.
            self._check(members)
            return
        off, length = info['data_off'], info['data_len']
        try:
            for s in range(self.n):
                if s not in skip:
                    path = self.member[s]
                    files[s] = open(self.file_of.get(path, path), 'rb')
            for stripe in range(length // self.chunk):
                self._audit_stripe(files, off, stripe)
        finally:
            for f in files.values():
                f.close()

    def _check(self, members):
        """It fails if a member is missing, too."""
        r = subprocess.run([self.command, 'check', *members], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not re.search(r'ended: 0 blocks were wrong, 0 of them were repaired$',
                         r.stdout, re.M):
            raise Failure('check: %s' % r.stdout)

    def _audit_stripe(self, files, off, stripe):
        chunk = []
        for role in range(self.n):
            f = files.get(self.slot_of(stripe, role))
            if f is None:
                chunk.append(None)
                continue
            f.seek(off + stripe * self.chunk)
            c = f.read(self.chunk)
            if len(c) != self.chunk:
                raise Failure('stripe %d role %d: short' % (stripe, role))
            chunk.append(c)
        if None in chunk[:self.k]:
            return              # a data chunk is not there to compare with
        if not any(c and c.strip(b'\0') for c in chunk):
            return
        parity = gf.parity_of(self.code, self.w, self.m, chunk[:self.k])
        for j in range(self.m):
            got = chunk[self.k + j]
            if got is not None and got != parity[j]:
                bad = next(i for i in range(self.chunk)
                           if got[i] != parity[j][i])
                self.wrong_at = stripe * self.k * self.chunk + bad
                raise Failure('stripe %d: parity %d is wrong from byte %d '
                              'of the chunk on (slot %d)' %
                              (stripe, j, bad,
                               self.slot_of(stripe, self.k + j)))
