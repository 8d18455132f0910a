"""gpuraid: the scenarios of the fault lab with members on NBD servers.

As in scenarios.py, each doc string says what is promised.  The servers forget
what was not flushed when they are killed (tests/powerfail/volatile-plugin.c).

SPDX-License-Identifier: BSD-3-Clause
"""

import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time

from .array import BLOCK, SAN, Failure, Skipped, until_up, written
from .restarts import fingerprint
from .scenarios import read_others

# Never with a sanitizer: that is for the array.
PLUGIN = os.path.realpath(os.path.join(
    not SAN and os.environ.get('B') or 'build', 'tests/volatile-plugin.so'))
PORT = 10809
LIMIT = 8               # seconds: timeout= of arrays that lose members
LONG = 600              # of those that lose none, however slow all is
OTHER = 'other content than was written'        # in the log

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


class Network:
    """Another network namespace for this thread, and the threads and processes
    that it starts: two labs at a time do not meet."""

    def __init__(self, lab):
        if os.geteuid():
            raise Skipped('not root: no network namespaces')
        self.before = os.open('/proc/thread-self/ns/net', os.O_RDONLY)
        lab.at_close.append(self.leave)
        if libc.unshare(CLONE_NEWNET):
            raise Skipped('no network namespaces: '
                          + os.strerror(ctypes.get_errno()))
        lab.network = self

    def leave(self):
        libc.setns(self.before, CLONE_NEWNET)
        os.close(self.before)


class Host:
    """A network namespace with a link to the lab's own, which can be cut without
    a word to either side."""

    nr = 0

    def __init__(self, lab):
        if not getattr(lab, 'network', None):
            Network(lab)
        Host.nr += 1
        here, self.address = ('198.18.%d.%d' % (
            Host.nr // 64, 4 * (Host.nr % 64) + i) for i in (1, 2))
        # Unlike links and addresses, these names are seen everywhere.
        self.name = 'gpuraid-%d-%d' % (os.getpid(), Host.nr)
        link = 'gr%d' % Host.nr
        self._ip('netns', 'add', self.name)
        lab.at_close.append(lambda: subprocess.run(
            ['ip', 'netns', 'delete', self.name]))
        try:
            self._ip('link', 'add', link, 'type', 'veth', 'peer', 'name',
                     'eth0', 'netns', self.name)
        except Failure as e:
            raise Skipped('no kernel module veth: %s' % e)
        self._ip('address', 'add', here + '/30', 'dev', link)
        self._ip('link', 'set', link, 'up')
        self._ip('-n', self.name, 'address', 'add', self.address + '/30',
                 'dev', 'eth0')
        self.join()

    @staticmethod
    def _ip(*args):
        r = subprocess.run(['ip', *args], stdout=subprocess.PIPE, text=True,
                           stderr=subprocess.STDOUT)
        if r.returncode:
            raise Failure('ip %s: %s' % (' '.join(args), r.stdout.strip()))

    def cut(self):
        self._ip('-n', self.name, 'link', 'set', 'eth0', 'down')

    def join(self):
        self._ip('-n', self.name, 'link', 'set', 'eth0', 'up')

    def delay(self, ms):
        """A round trip takes this much longer from now on."""
        self._ip('netns', 'exec', self.name, 'tc', 'qdisc', 'add', 'dev',
                 'eth0', 'root', 'netem', 'delay', '%gms' % ms)


class Export:
    """A member on a server of its own, on that host or on a Unix socket."""

    def __init__(self, lab, slot, host=None):
        self.lab, self.slot, self.host = lab, slot, host
        self.dir = os.path.join(lab.dir, 'server-%02d' % slot)
        self.disks = os.path.join(self.dir, 'disks')
        os.makedirs(self.disks)
        self.file = os.path.join(self.disks, 'disk')
        self.sock = os.path.join(self.dir, 'sock')
        self.uri = ('nbd://%s/disk' % host.address if host else
                    'nbd+unix:///disk?socket=' + self.sock)
        self.server = None
        self.make()
        self.closed = threading.Event()
        self.lock = threading.Lock()    # server
        lab.at_close.append(self.close)
        threading.Thread(target=self.revive, daemon=True).start()
        lab.array.member[slot] = self.uri
        lab.array.file_of[self.uri] = self.file

    def make(self):
        """A blank disk."""
        with open(self.file, 'wb') as f:
            f.truncate(-(-self.lab.array.member_size // BLOCK) * BLOCK)

    def start(self):
        with self.lock:
            self._start()

    def _start(self):
        control = os.path.join(self.dir, 'control')
        pid = os.path.join(self.dir, 'pid')
        for f in self.sock, control, pid:
            if os.path.exists(f):
                os.unlink(f)
        where = ['-p', str(PORT)] if self.host else ['-U', self.sock]
        with open(os.path.join(self.dir, 'log'), 'ab') as log:
            self.server = subprocess.Popen(
                [*(('ip', 'netns', 'exec', self.host.name) if self.host
                   else ()),
                 'nbdkit', '-f', '-P', pid, *where, PLUGIN,
                 'dir=' + self.disks, 'control=' + control],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until_up('the server of %d' % self.slot, self.server,
                 lambda: written(pid))

    def kill(self):
        """Its memory is gone, and what was not flushed."""
        with self.lock:
            if self.server:
                self.server.kill()
                self.server.wait()
                self.server = None

    def hang(self):
        self.server.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.server.send_signal(signal.SIGCONT)

    def revive(self):
        """As its unit would.  nbdkit 1.32 may end when a client is gone before
        it was answered, at any time after that."""
        while not self.closed.wait(0.1):
            with self.lock:
                if self.server and self.server.poll() is not None:
                    self._start()

    def close(self):
        self.closed.set()
        self.kill()


def prepare(lab, nr=None, hosts=False, timeout=LIMIT):
    """An array of which nr members, or all, are exports: these."""
    a = lab.prepare()
    a.keys.append('timeout=%ds' % timeout)
    slots = lab.sample(nr or a.n)
    exports = [Export(lab, s, Host(lab) if hosts else None) for s in slots]
    for e in exports:
        e.start()
    return a, exports


def out_of(status, n):
    return {s for s, e in enumerate(status['members'][:n])
            if e['state'] != 'active'}


def is_out(lab, slots):
    a = lab.array
    a.until(lambda st: out_of(st, a.n) == slots, '%s are out' % slots)


def come_back(lab, exports):
    lab.readd([e.slot for e in exports])
    lab.wait_healthy()


def stayed(lab, began):
    """No member is out that was away since then, for less than timeout=.  On a
    machine with other work that may have taken longer."""
    out = out_of(lab.array.status(), lab.array.n)
    if out and time.monotonic() < began + LIMIT:
        raise Failure('%s were taken out before timeout=' % out)
    if out:
        lab.say('%s were away for so long that they are out' % out)
        lab.readd(out)


def remote_restarts(lab):
    """Servers of members are killed and started again, one after the other,
    then all at the same time.  No client sees an error, no member is taken
    out, and no byte is lost although the servers forget what was not flushed.
    Some members are files."""
    a, exports = prepare(lab, 4, timeout=LONG)
    lab.launch()
    for e in exports:
        lab.say('the server of %d restarts' % e.slot)
        e.kill()
        lab.run()
        e.start()
        lab.answers('its server is back')
    lab.say('all servers restart')
    for e in exports:
        e.kill()
    lab.run()
    for e in exports:
        e.start()
    lab.answers('all servers are back')
    lab.wait_healthy()
    lab.verify()
    read_others(lab, ())
    lab.finish()


def remote_power(lab):
    """kill -9 of the array's server and of all servers of its members in one
    moment, under load: what was flushed is there."""
    a, exports = prepare(lab, timeout=LONG)
    lab.launch()
    for _ in range(2):
        for e in exports:
            e.hang()
        lab.crash()
        for e in exports:
            e.kill()
            e.start()
        a.start()
        lab.go_on(pin=True)
        lab.run()
    lab.wait_healthy()
    lab.verify()
    read_others(lab, ())
    lab.finish()


def remote_hangs(lab):
    """The servers of m members stop (SIGSTOP).  After timeout= these are out,
    and requests are answered.  The servers go on, with what they were asked
    long ago, and are added again."""
    a, exports = prepare(lab)
    lab.launch()
    hung = exports[:a.m]
    lab.say('%s hang' % [e.slot for e in hung])
    for e in hung:
        e.hang()
    is_out(lab, {e.slot for e in hung})
    lab.answers('those that hang are out')
    lab.say('they are out; the slowest request took %.2f s'
            % lab.load.slowest)
    lab.verify()
    for e in hung:
        e.go_on()
    lab.run()
    come_back(lab, hung)
    lab.verify()
    read_others(lab, ())
    lab.finish()


def remote_exchanged(lab):
    """A server is away, and another export is there in its place: first a
    blank one, then an old copy.  Nothing is written to either; the member is
    out, and it is said why.  Its own export is taken again."""
    a, exports = prepare(lab)
    lab.launch()
    e = exports[0]
    own = e.file + '.own'
    old = e.file + '.old'
    lab.halt()
    shutil.copyfile(e.file, old)
    lab.start()
    lab.run()
    for other in None, old:
        e.kill()
        lab.say('%s in the place of %d' % (
            'a copy' if other else 'a blank one', e.slot))
        os.rename(e.file, own)
        if other:
            shutil.copyfile(other, e.file)
        else:
            e.make()
        before = fingerprint([e.file])
        nr = a.nr_logged(OTHER)
        e.start()
        is_out(lab, {e.slot})
        lab.answers('another export is out')
        a.logged(OTHER, nr + 1)
        e.kill()
        if fingerprint([e.file]) != before:
            raise Failure('another export was written to')
        os.rename(own, e.file)
        e.start()
        come_back(lab, [e])
        lab.verify()
    read_others(lab, (e.slot,))
    lab.finish()


def remote_cut(lab):
    """The network to members is cut: to all for a moment, which no client
    notices; to m of them for longer than timeout=, which are out then; to one
    more, with which requests wait until it is back."""
    a, exports = prepare(lab, hosts=True)
    lab.launch()
    lab.say('the network is gone')
    began = time.monotonic()
    for e in exports:
        e.host.cut()
    lab.run()
    for e in exports:
        e.host.join()
    lab.answers('the network is back')
    stayed(lab, began)
    lab.wait_healthy()
    gone = exports[:a.m]
    lab.say('%s are gone' % [e.slot for e in gone])
    for e in gone:
        e.host.cut()
    is_out(lab, {e.slot for e in gone})
    lab.answers('those that are gone are out')
    lab.verify()
    one_more = exports[a.m]
    lab.say('so is %d' % one_more.slot)
    one_more.host.cut()
    lab.run(2)
    one_more.host.join()
    lab.answers('%d is back' % one_more.slot)
    for e in gone:
        e.host.join()
    come_back(lab, gone)
    lab.verify()
    read_others(lab, ())
    lab.finish()


ALL = (remote_restarts, remote_power, remote_hangs, remote_exchanged,
       remote_cut)
