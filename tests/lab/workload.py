"""gpuraid: a concurrent workload with a model of what every block may hold.

Each block of 4096 bytes contains its number and that of its write
(its generation; 0 is zeroes), in every sector, so that a wrong one shows
where it came from.  The model records what was acknowledged, what was
flushed and what is in flight, and so what a read may return now and
after a crash.

One thread drives several connections with asynchronous calls: the
blocking ones of libnbd's Python module would stop all other threads.

SPDX-License-Identifier: BSD-3-Clause
"""

import errno
import hashlib
import random
import select
import struct
import threading
import time
import traceback
import types

import nbd

from . import gf
from .array import BLOCK, Failure, MiB, until
from .evidence import History

SECTOR = 512
HEADER = struct.Struct('<QQQQ')
MAGIC = 0x6b636f6c62626c61
ZERO = bytes(BLOCK)
RAW = -1                        # a generation: see Model.raw
ANY = None                      # a block that may hold anything
LOST_PATH = {errno.ENOTCONN, errno.EINVAL, errno.ESHUTDOWN, errno.EPIPE}


def content(seed, block, gen, unit=BLOCK):
    """The content of a block after write number gen."""
    if gen == 0:
        return ZERO[:unit]
    rest = filler(seed, block, gen)
    return b''.join(HEADER.pack(MAGIC, seed << 8 | i, block, gen) + rest
                    for i in range(unit // SECTOR))


def filler(seed, block, gen):
    """Of each sector, after its header."""
    return hashlib.blake2b(b'%d %d %d' % (seed, block, gen),
                           digest_size=60).digest() * 8


def describe(data):
    """The block and generation in a sector.  What was computed from sectors
    that do not belong together may look like a header, and the rest tells."""
    if not data.strip(b'\0'):
        return 'zeroes'
    magic, seed, block, gen = HEADER.unpack(data[:HEADER.size])
    if magic != MAGIC:
        return 'garbage ' + data[:16].hex()
    want = filler(seed >> 8, block, gen)
    differ = sum(x != y for x, y in zip(data[HEADER.size:], want))
    if differ or seed & 255 >= BLOCK // SECTOR:
        return ('a mix: the header of block %d generation %d, and %d other '
                'bytes of %d' % (block, gen, differ, len(want)))
    return 'block %d generation %d' % (block, gen)


class Model:
    """Which generations each block may hold.

    now[b]     those that a read may give; ANY for a lost block
    hist[b]    [(serial, gen)]: those that may be there after a crash;
               only blocks that are not clean
    unit       bytes of a block
    """

    def __init__(self, size, seed, unit=BLOCK):
        self.unit = unit
        self.nr = size // unit
        self.seed = seed
        self.now = [(0,)] * self.nr
        self.hist = {}
        self.busy = {}          # block -> generation being written
        self.serial = 0
        self.raw = {}           # block -> bytes, of generation RAW
        self.wrong_at = None    # the first block that was wrong, its bytes

    def bytes_of(self, b, gen):
        return self.raw[b] if gen == RAW else \
            content(self.seed, b, gen, self.unit)

    def begin(self, b0, nr, gen):
        self.serial += 1
        for b in range(b0, b0 + nr):
            if b not in self.hist:
                self.hist[b] = [(self.serial, g) for g in self.now[b] or ()]
            self.hist[b].append((self.serial, gen))
            self.busy[b] = gen

    def end(self, b0, nr, gen, ok, durable):
        for b in range(b0, b0 + nr):
            del self.busy[b]
            if ok:
                self.now[b] = (gen,)
                if durable:
                    del self.hist[b]
            elif self.now[b] is not ANY:
                self.now[b] = tuple({*self.now[b], gen})

    def flush_begin(self):
        """What the flush covers if it succeeds."""
        self.serial += 1
        return self.serial, {b: {*(self.now[b] or ()), *(
            [self.busy[b]] if b in self.busy else [])} for b in self.hist}

    def flush_end(self, token):
        serial, covered = token
        for b, keep in covered.items():
            if b in self.hist:
                h = [e for e in self.hist[b] if e[0] > serial or e[1] in keep]
                self.hist[b] = h
                # After a write that failed its row stays open: what was
                # read is one of several, and the members need not agree.
                if b not in self.busy and self.now[b] is not ANY and \
                   len(self.now[b]) == 1 and \
                   {g for _, g in h} == set(self.now[b]):
                    del self.hist[b]

    def crash(self):
        """The server was killed: the blocks not flushed, by number."""
        assert not self.busy
        open_blocks = sorted(self.hist)
        for b, h in self.hist.items():
            self.now[b] = tuple({g for _, g in h})
        self.hist = {}
        return open_blocks

    def lose(self, array, open_blocks, absent):
        """Rows in flight may lose the absent slots' blocks."""
        per_chunk = array.chunk // self.unit
        rows = {(b // (array.k * per_chunk), b % per_chunk)
                for b in open_blocks}
        for stripe, row in rows:
            for role in range(array.k):
                if gf.slot_of(array.k, array.m, stripe, role) in absent:
                    b = (stripe * array.k + role) * per_chunk + row
                    if b < self.nr:
                        self.now[b] = ANY

    def check(self, b0, data, pin=False):
        """None, or what is wrong with these blocks.  pin: from now on a block
        with several possible generations has the one that was found."""
        nr = len(data) // self.unit
        want = [self.now[b] for b in range(b0, b0 + nr)]
        if all(w is not ANY and len(w) == 1 for w in want) and \
           data == b''.join(self.bytes_of(b0 + i, w[0])
                            for i, w in enumerate(want)):
            return None
        for i, w in enumerate(want):
            b = b0 + i
            got = data[i * self.unit:(i + 1) * self.unit]
            wrong = self._check_block(b, w, got)
            if wrong:
                self.wrong_at = self.wrong_at or (b, got)
                return wrong
            if pin and (w is ANY or len(w) > 1):
                self._pin(b, w, got)
        return None

    def _check_block(self, b, want, got):
        if want is ANY:
            return None
        may = [self.bytes_of(b, g) for g in want]
        for s in range(0, self.unit, SECTOR):
            part = got[s:s + SECTOR]
            if not any(part == x[s:s + SECTOR] for x in may):
                return ('%s holds %s, may hold generation %s'
                        % (self._place(b, s // SECTOR), describe(part),
                           ' or '.join(map(str, sorted(want)))))
        return None

    def _place(self, b, sector):
        return 'block %d sector %d' % (b, sector)

    def _pin(self, b, want, got):
        for g in want or ():
            if got == self.bytes_of(b, g):
                self.now[b] = (g,)
                return
        self.raw[b] = got
        self.now[b] = (RAW,)


class Op:
    """end: when it was answered, or None.  err: of the answer, 0 if it is good.
    on: the number of its connection."""

    __slots__ = ('kind', 'b0', 'nr', 'gen', 'fua', 'token', 'buf', 'start',
                 'end', 'err', 'conn', 'on')


class Workload:
    """start, pause, resume, stop; read_all and crash while paused."""

    model_class = Model
    unit = BLOCK                # bytes that the model has as one
    lengths = 1, 1, 1, 2, 3, 5, 8, 16, 33, 64   # of small requests, in units

    def __init__(self, array, seed, depth=16, nr_conns=2, mix=None):
        self.array = array
        self.model = self.model_class(array.size, seed, self.unit)
        self.rng = random.Random(seed)
        self.depth, self.nr_conns = depth, nr_conns
        # kind -> weight
        self.mix = mix or dict(write=45, read=35, flush=6, zero=4, trim=3,
                               big=7)
        self.fua = 0.1          # share of writes
        self.gen = 0
        self.conns = []
        self.reading = {}       # block -> readers
        self.done = []
        self.in_flight = set()
        self.history = History()
        self.may_fail = set()   # errnos that are no failure now
        self.expect_crash = False
        self.wrong = None
        self.nr = dict(read=0, write=0, flush=0, zero=0, errors=0)
        self.slowest = 0.0
        # With lock: what the thread is asked for, and what it has done.  An
        # answer has the number of its pause, so that none is taken for that
        # to a later one.
        self.lock = threading.Condition()
        self.running = self.quit = False
        self.asked = self.paused = 0    # pauses
        self.thread = None

    # -- for the scenario's thread --------------------------------------

    def start(self):
        self.connect()
        self.running = True
        self.thread = threading.Thread(target=self._main, daemon=True)
        self.thread.start()

    def connect(self):
        self.conns = []
        for _ in range(self.nr_conns):
            h = nbd.NBD()
            h.connect_uri(self.array.uri)
            self.conns.append(h)

    def disconnect(self):
        for h in self.conns:
            try:
                h.shutdown()
            except nbd.Error:
                pass
        self.conns = []

    def pause(self):
        """Returns with nothing in flight."""
        with self.lock:
            self.running = False
            self.asked += 1
            nr = self.asked
            self.lock.notify_all()
        until('requests in flight are answered', lambda: self._is_paused(nr),
              lambda: sorted('%s of block %d' % (o.kind, o.b0)
                             for o in list(self.in_flight)))
        self.raise_wrong()

    def _is_paused(self, nr):
        with self.lock:
            return self.paused >= nr or not self.thread.is_alive() or \
                self.lock.wait_for(lambda: self.paused >= nr, 0.1)

    def resume(self):
        self.raise_wrong()
        with self.lock:
            self.running = True
            self.lock.notify_all()

    def run_for(self, seconds):
        """Continue for a while, or until an error."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.raise_wrong()
            time.sleep(0.02)

    def raise_wrong(self):
        if self.wrong:
            raise Failure(self.wrong)

    def stop(self):
        if self.thread:
            self.pause()
            self._quit()
            self.thread.join()
            self.thread = None
        self.disconnect()
        self.raise_wrong()

    def abandon(self):
        """At the end of a scenario that failed: never raises."""
        self._quit()
        if self.thread:
            self.thread.join(5)

    def _quit(self):
        with self.lock:
            self.quit = True
            self.lock.notify_all()

    def flush(self):
        """Paused."""
        token = self.model.flush_begin()
        with self.history.during('flush, alone'):
            self.conns[0].flush()
        self.model.flush_end(token)

    def clear(self):
        """Paused: trim and flush all of it."""
        nr = self.model.nr
        self.model.begin(0, nr, 0)
        step = 1 << 25
        with self.history.during('trim of all'):
            for off in range(0, nr * self.unit, step):
                self.conns[0].trim(min(step, nr * self.unit - off), off)
        self.model.end(0, nr, 0, ok=True, durable=False)
        self.flush()

    def read_all(self, pin=False, h=None):
        """Paused: every byte against the model.  h: through this
        connection."""
        step = 1 << 20
        h = h or self.conns[0]
        with self.history.during('read of all%s' % (
                ', what is found stays' if pin else '')):
            for off in range(0, self.model.nr * self.unit, step):
                n = min(step, self.model.nr * self.unit - off)
                wrong = self.model.check(off // self.unit,
                                         bytes(h.pread(n, off)), pin)
                if wrong:
                    raise Failure(wrong)

    def read_what_can_be_read(self):
        """Paused: blocks that answer must be right.  Counts the others."""
        lost = 0
        h = self.conns[0]
        for b in range(self.model.nr):
            try:
                data = bytes(h.pread(self.unit, b * self.unit))
            except nbd.Error as e:
                if e.errnum != errno.EIO:
                    raise Failure('block %d: %s instead of EIO' % (b, e))
                lost += 1
                continue
            wrong = self.model.check(b, data)
            if wrong:
                raise Failure(wrong)
        return lost

    def about_wrong(self):
        """What evidence.keep wants to know of the first wrong block, if
        there is one."""
        m, per = self.model, BLOCK // self.unit
        b, got = m.wrong_at or (None, b'')
        if b is None and self.array.wrong_at is None:
            return None
        off = self.array.wrong_at if b is None else b * self.unit
        first = off // BLOCK * per
        blocks = range(first, min(first + per, m.nr))
        gens = {g for x in blocks for g in m.now[x] or ()} | {
            o.gen for x in blocks for o in self.history.blocks.get(x, ())
            if o.gen is not None}
        return types.SimpleNamespace(
            off=off, got=got, blocks=blocks, unit=self.unit,
            name=self.name_sector,
            versions={'generation %d' % g: b''.join(
                m.bytes_of(x, g) for x in blocks)
                for g in sorted(gens - {RAW})[-8:]},
            words='; '.join('%d may hold %s%s' % (
                x, m.now[x], ', not flushed %s' % m.hist[x]
                if x in m.hist else '') for x in blocks))

    def name_sector(self, off, data):
        """Short if it belongs there."""
        words = describe(data)
        here = 'block %d ' % (off // self.unit)
        return words[len(here):] if words.startswith(here) else words

    # -- its own thread -------------------------------------------------

    def _main(self):
        try:
            while not self.quit:
                if self._may_begin():
                    self._fill()
                    self._turn()
                elif self.in_flight:
                    self._turn()
                else:
                    self._rest()
        except Exception:       # any: the scenario's thread must hear of it
            self.wrong = self.wrong or 'workload: ' + traceback.format_exc()

    def _may_begin(self):
        return self.running and not self.wrong and self.alive()

    def _rest(self):
        """Nothing is in flight, and only this thread can begin anything."""
        with self.lock:
            if not self.running:
                self.paused = self.asked
                self.lock.notify_all()
            if not self.quit:
                # With connections that are dead it has to look again.
                self.lock.wait(0.01 if self.running else None)

    def alive(self):
        return bool(self.conns) and all(
            not (h.aio_is_dead() or h.aio_is_closed()) for h in self.conns)

    def _fill(self):
        for _ in range(4 * self.depth):
            if len(self.in_flight) >= self.depth:
                break
            self._submit_one()

    def _range(self, kind):
        r = self.rng
        if kind == 'big':
            stripe = self.array.k * self.array.chunk // self.unit
            nr = min(stripe * r.randint(1, 2), MiB // self.unit,
                     self.model.nr)
            b0 = r.randrange(self.model.nr - nr + 1)
            return (b0 - b0 % stripe if r.random() < 0.7 else b0), nr
        nr = min(r.choice(self.lengths), self.model.nr)
        return r.randrange(self.model.nr - nr + 1), nr

    def _submit_one(self):
        r = self.rng
        op = Op()
        kind = r.choices(list(self.mix), self.mix.values())[0]
        op.b0, op.nr = self._range(kind)
        op.kind = 'write' if kind == 'big' else kind
        blocks = range(op.b0, op.b0 + op.nr)
        if op.kind != 'flush' and any(b in self.model.busy for b in blocks):
            return
        if op.kind not in ('flush', 'read') and \
           any(b in self.reading for b in blocks):
            return
        op.fua = r.random() < self.fua
        op.conn = r.choice(self.conns)
        op.start, op.err, op.gen, op.end = time.monotonic(), None, None, None
        self._mark(op)
        op.on = self.conns.index(op.conn)
        self.history.add(op)
        try:
            self._issue(op)
        except nbd.Error as e:
            op.err = e.errnum or errno.ENOTCONN
            self.done.append(op)

    def _mark(self, op):
        self.in_flight.add(op)
        if op.kind == 'flush':
            op.token = self.model.flush_begin()
        elif op.kind == 'read':
            for b in range(op.b0, op.b0 + op.nr):
                self.reading[b] = self.reading.get(b, 0) + 1
        else:
            self.gen += 1
            op.gen = self.gen if op.kind == 'write' else 0
            self.model.begin(op.b0, op.nr, op.gen)

    def _issue(self, op):
        h, off, length = op.conn, op.b0 * self.unit, op.nr * self.unit

        def completed(err):
            op.err = err.value
            self.done.append(op)
            return 1
        fua = nbd.CMD_FLAG_FUA if op.fua else 0
        if op.kind == 'flush':
            h.aio_flush(completed)
        elif op.kind == 'read':
            op.buf = nbd.Buffer(length)
            h.aio_pread(op.buf, off, completed)
        elif op.kind == 'write':
            data = b''.join(self.model.bytes_of(b, op.gen)
                            for b in range(op.b0, op.b0 + op.nr))
            op.buf = nbd.Buffer.from_bytearray(bytearray(data))
            h.aio_pwrite(op.buf, off, completed, flags=fua)
        elif op.kind == 'zero':
            h.aio_zero(length, off, completed, flags=fua)
        else:
            h.aio_trim(length, off, completed, flags=fua)

    def _turn(self):
        """Wait a little for news and take it."""
        poll = select.poll()
        by_fd = {}
        for h in self.conns:
            if h.aio_is_dead() or h.aio_is_closed():
                continue
            d = h.aio_get_direction()
            fd = h.aio_get_fd()
            by_fd[fd] = h
            poll.register(fd, (select.POLLIN if d & nbd.AIO_DIRECTION_READ
                               else 0) |
                          (select.POLLOUT if d & nbd.AIO_DIRECTION_WRITE
                           else 0))
        if by_fd and not self.done:
            for fd, ev in poll.poll(50):
                self._notify(by_fd[fd], ev)
        done, self.done = self.done, []
        for op in done:
            self._finish(op)
        if not by_fd and not done:
            # Both connections died: requests without an answer are unknown.
            for op in list(self.in_flight):
                op.err = errno.ENOTCONN
                self._finish(op)

    def _notify(self, h, ev):
        d = h.aio_get_direction()
        try:
            if ev & (select.POLLIN | select.POLLHUP | select.POLLERR) and \
               d & nbd.AIO_DIRECTION_READ:
                h.aio_notify_read()
            elif d & nbd.AIO_DIRECTION_WRITE:
                h.aio_notify_write()
        except nbd.Error:
            pass                # dead: its commands complete with an error

    def _finish(self, op):
        if op not in self.in_flight:
            return
        self.in_flight.discard(op)
        ok = op.err == 0
        op.end = time.monotonic()
        self.slowest = max(self.slowest, op.end - op.start)
        if not ok:
            self.nr['errors'] += 1
            lost = op.err in LOST_PATH and self.expect_crash
            if not lost and op.err not in self.may_fail and not self.wrong:
                self.wrong = '%s of block %d, %d blocks: %s' % (
                    op.kind, op.b0, op.nr, errno.errorcode.get(op.err))
        else:
            self.nr['zero' if op.kind == 'trim' else op.kind] += 1
        if op.kind == 'flush':
            if ok:
                self.model.flush_end(op.token)
        elif op.kind == 'read':
            self._finish_read(op, ok)
        else:
            self.model.end(op.b0, op.nr, op.gen, ok, op.fua)
        op.conn = op.buf = op.token = None      # the history keeps the rest

    def _finish_read(self, op, ok):
        for b in range(op.b0, op.b0 + op.nr):
            self.reading[b] -= 1
            if not self.reading[b]:
                del self.reading[b]
        if ok:
            wrong = self.model.check(op.b0, bytes(op.buf.to_bytearray()))
            if wrong and not self.wrong:
                self.wrong = 'read under load: ' + wrong
