#!/usr/bin/python3
"""gpuraid: clients that are killed with requests under way, beside one that
writes and compares.

usage: tests/clients/killed-clients.py PID URI ROUNDS [device]
       tests/clients/killed-clients.py URI

With PID, of the server: exit status 1, and one line, if the client beside them
was cut off or read other bytes, the server has ended, or threads or
descriptors of killed clients are left.  75: a client had no answer for two
minutes, and nothing else was wrong.  With "device" each client is the
kernel's nbd driver, whose device is detached while programs read and write it.
Without PID: a client that is to be killed; it prints a line when it has had
answers.

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import random
import select
import subprocess
import sys
import threading
import time
import types

import nbd

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                '..'))
from lab import evidence                                        # noqa: E402
from lab.array import LATE, STILL, Array, Failure, Late         # noqa: E402

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../..')
GPURAID = os.path.join(os.environ.get('OUT', TOP), 'gpuraid')
CONNECTIONS = 3
DEPTH = 32
BESIDE = 1 << 20                # bytes at the end, for the client beside them
LENGTHS = (4096, 65536, 262144)


def connect(uri):
    handle = nbd.NBD()
    handle.set_uri_allow_local_file(True)
    handle.connect_uri(uri)
    return handle


# ---- a client that is to be killed ----------------------------------------

class Load:
    """One connection, with DEPTH requests under way."""

    def __init__(self, uri):
        self.handle = connect(uri)
        self.blocks = self.handle.get_size() - BESIDE >> 12
        self.buffers = [nbd.Buffer.from_bytearray(bytearray(n)) for n in LENGTHS]
        self.requests = []
        self.answers = 0

    def submit(self):
        buffer = random.choice(self.buffers)
        offset = random.randrange(self.blocks - (max(LENGTHS) >> 12)) << 12
        if random.random() < .6:
            return self.handle.aio_pread(buffer, offset)
        return self.handle.aio_pwrite(buffer, offset)

    def step(self):
        while len(self.requests) < DEPTH:
            self.requests.append(self.submit())
        self.handle.poll(10)
        left = [r for r in self.requests
                if not self.handle.aio_command_completed(r)]
        self.answers += len(self.requests) - len(left)
        self.requests = left


def be_killed(uri):
    loads = [Load(uri) for _ in range(CONNECTIONS)]
    is_said = False
    while True:
        for load in loads:
            load.step()
        if not is_said and all(load.answers >= DEPTH for load in loads):
            print('under load', flush=True)
            is_said = True


# ---- the others ------------------------------------------------------------

class Beside(threading.Thread):
    """Writes and compares, until it is told to stop or has a reason to."""

    def __init__(self, handle):
        super().__init__()
        self.handle = handle
        self.compared = 0
        self.trouble = None
        self.stop = threading.Event()
        self.history = evidence.History()
        self.written = {}       # offset -> what was written last, newest first
        self.wrong = None       # see evidence.keep

    def run(self):
        first = self.handle.get_size() - BESIDE
        try:
            while not self.stop.is_set():
                self.turn(first + random.randrange(BESIDE // 65536) * 65536)
                self.compared += 1
        except (nbd.Error, Failure) as e:
            self.trouble = e

    def turn(self, offset):
        data = os.urandom(65536)
        self.written[offset] = [data, *self.written.get(offset, ())[:3]]
        self.request('write', offset,
                     lambda: self.handle.pwrite(data, offset))
        got = self.request('read', offset,
                           lambda: self.handle.pread(len(data), offset))
        if got != data:
            self.note_wrong(offset, data, got)
            raise Failure('it reads other bytes than it wrote')

    def request(self, kind, offset, call):
        op = types.SimpleNamespace(
            kind=kind, b0=offset >> 12, nr=16, gen=self.compared, fua=False,
            on=0, start=time.monotonic(), end=None, err=None)
        self.history.add(op)
        answer = call()
        op.end, op.err = time.monotonic(), 0
        return answer

    def note_wrong(self, offset, data, got):
        at = next(i for i in range(len(data)) if data[i] != got[i])
        bad = [b for b in range(16)
               if data[b << 12:b + 1 << 12] != got[b << 12:b + 1 << 12]]
        block = slice(at >> 12 << 12, (at >> 12) + 1 << 12)
        self.wrong = types.SimpleNamespace(
            off=offset + at, got=got, blocks=[offset + at >> 12], unit=4096,
            name=self.name_sector,
            versions={'write %d before' % i if i else 'what was written':
                      w[block] for i, w in enumerate(self.written[offset])},
            words='of 64 KiB at %d other bytes from %d on, in blocks %s' % (
                offset, at, bad))

    def name_sector(self, off, data):
        start = off >> 16 << 16
        for i, w in enumerate(self.written.get(start, ())):
            if data == w[off - start:][:512]:
                return 'of the write %d before' % i if i else 'right'
        return 'zeroes' if not any(data) else 'unknown: ' + data[:8].hex()


class Served(Array):
    """The array of that server, by its command line."""

    uri = None

    def __init__(self, pid, uri):
        with open('/proc/%d/cmdline' % pid) as f:
            words = f.read().split('\0')
        plugin = next(i for i, w in enumerate(words)
                      if w.endswith('plugin.so'))
        log = os.readlink('/proc/%d/fd/2' % pid)
        super().__init__(os.path.dirname(log), 1, 1, size=0)
        self.uri, self.log = uri, log
        self.member = [w for w in words[plugin + 1:] if os.path.exists(w)]
        self.control = next(w.split('=', 1)[1] for w in words
                            if w.startswith('control='))
        info = self.examine(self.member[0])
        for key in 'k', 'm', 'chunk', 'code', 'w', 'data_off':
            setattr(self, key, info[key])
        self.n = self.k + self.m


def keep(pid, uri, beside):
    """What is known of other bytes than were written: the folder."""
    try:
        array, wrong = Served(pid, uri), beside.wrong
    except Exception as e:      # the server has ended, say
        print('no array: %r' % e, file=sys.stderr)
        return None
    kept, lines = evidence.keep('killed-clients', array.folder, array, (),
                                wrong, beside.history)
    print('\n'.join(lines), file=sys.stderr)
    return kept


def in_use(pid):
    """The server's descriptors, and nbdkit's threads.  gpuraid's own have names;
    the kernel's, for io_uring, too.  Some of these start when they are needed."""
    threads = []
    for tid in os.listdir('/proc/%d/task' % pid):
        try:
            with open('/proc/%d/task/%s/comm' % (pid, tid)) as f:
                threads.append(f.read().strip())
        except OSError:         # it has ended
            pass
    return len(os.listdir('/proc/%d/fd' % pid)), threads.count('nbdkit')


def kill_one(uri):
    client = subprocess.Popen([sys.executable, __file__, uri],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        if not select.select([client.stdout], [], [], STILL)[0]:
            raise Late('a client has no answers')
        if not client.stdout.readline():
            raise Failure('a client ended by itself')
        time.sleep(random.random() * .05)
    finally:
        client.kill()
        client.wait()
        client.stdout.close()


def dd(*operands):
    return subprocess.Popen(['dd', 'bs=64k', 'status=none', *operands],
                            stderr=subprocess.DEVNULL)


def gpuraid(*args):
    return subprocess.run([GPURAID, *args], check=True, text=True,
                          stdout=subprocess.PIPE, timeout=120).stdout.strip()


def detach_one(uri):
    """Its connection is cut under load; then it is detached."""
    device = gpuraid('attach', '--name', 'cut', uri)
    with open('/sys/class/block/%s/size' % os.path.basename(device)) as f:
        blocks = int(f.read()) * 512 - BESIDE >> 16
    loads = [dd('if=' + device, 'of=/dev/null', 'iflag=direct') for _ in range(3)]
    loads += [dd('if=/dev/zero', 'of=' + device, 'oflag=direct', 'conv=notrunc',
                 'seek=%d' % (i * blocks // 3), 'count=%d' % (blocks // 3))
              for i in range(3)]
    time.sleep(.2 + random.random() * .3)
    if all(load.poll() is not None for load in loads):
        raise Failure('%s: nothing reads or writes it' % device)
    gpuraid('attach', '--resize', 'cut')
    for load in loads:
        load.kill()
    for load in loads:
        load.wait(60)
    gpuraid('detach', '--wait', '60', 'cut')
    if os.path.exists('/sys/class/block/%s/pid' % os.path.basename(device)):
        raise Failure('%s: is still attached' % device)


def settled(pid, threads, files=None):
    """In use, once that is no more than this, or does not change any more."""
    now, since = in_use(pid), time.monotonic()
    while now[1] > threads or (files is not None and now[0] > files):
        time.sleep(.1)
        last, now = now, in_use(pid)
        if now != last:
            since = time.monotonic()
        elif time.monotonic() > since + STILL:
            break
    return now


def trouble_of(pid, uri, beside, where=''):
    kept = keep(pid, uri, beside) if beside.wrong else None
    return Failure('%sthe client beside them: %s%s' % (
        where, beside.trouble, ' (kept: %s)' % kept if kept else ''))


def kill_clients(pid, uri, rounds, end_one):
    handle = connect(uri)
    beside = Beside(handle)
    beside.start()
    try:
        while beside.compared == 0 and beside.is_alive():
            time.sleep(.01)
        # nbdkit serves requests before all threads of a connection have begun.
        threads, last = in_use(pid)[1], None
        while threads != last:
            time.sleep(1)
            threads, last = in_use(pid)[1], threads
        # The first may make the server open files that it keeps.
        end_one(uri)
        before = settled(pid, threads)
        for n in range(rounds):
            end_one(uri)
            if beside.trouble:
                raise trouble_of(pid, uri, beside, 'round %d: ' % (n + 1))
    finally:
        beside.stop.set()
        beside.join()
    if beside.trouble:
        raise trouble_of(pid, uri, beside)
    now = settled(pid, threads, before[0])
    if now[0] > before[0] or now[1] > threads:
        raise Failure('%d descriptors, %d threads at first; %d, %d at the end' %
                      (before + now))
    handle.shutdown()
    print('%d rounds; the client beside them compared %d times; '
          '%d descriptors, %d threads at both ends' %
          ((rounds, beside.compared) + now))


def main():
    if len(sys.argv) == 2:
        be_killed(sys.argv[1])
    try:
        kill_clients(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]),
                     detach_one if sys.argv[4:] == ['device'] else kill_one)
    except Late as e:
        print('%s: %s' % (sys.argv[0], e), file=sys.stderr)
        sys.exit(LATE)
    except (Failure, nbd.Error, OSError) as e:
        sys.exit('%s: %s' % (sys.argv[0], e))


main()
