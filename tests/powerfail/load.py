"""gpuraid: the workload of the power-fail rig, and its model.

As in lab/workload.py, but by sector: requests need not be whole blocks,
and a crash may leave each sector old or new.  With a journal blocks are not
torn: see SectorModel.crash.

SPDX-License-Identifier: BSD-3-Clause
"""

import nbd

from lab.array import BLOCK, Failure, until
from lab.workload import SECTOR, Model, Workload, describe

PER_BLOCK = BLOCK // SECTOR


class Client:
    """A connection on which calls may take long: those of libnbd's Python
    module would stop all other threads, and never end if the server hangs."""

    def __init__(self, uri):
        self.h = nbd.NBD()
        self.h.aio_connect_uri(uri)
        self._wait('connect', lambda: not self.h.aio_is_connecting())
        if not self.h.aio_is_ready():
            raise Failure('the connection was closed')

    def __getattr__(self, name):
        return getattr(self.h, name)

    def _wait(self, what, done):
        def is_done():
            self.h.poll(10)
            return done()
        if not done():
            until(what + ' is answered', is_done)

    def _command(self, what, cookie):
        self._wait(what, lambda: self.h.aio_command_completed(cookie))

    def pread(self, length, off):
        buf = nbd.Buffer(length)
        self._command('read', self.h.aio_pread(buf, off))
        return buf.to_bytearray()

    def pwrite(self, data, off):
        buf = nbd.Buffer.from_bytearray(bytearray(data))
        self._command('write', self.h.aio_pwrite(buf, off))

    def flush(self):
        self._command('flush', self.h.aio_flush())


class SectorModel(Model):
    """whole     blocks are not torn (set by the rig)
    states[n]    after a crash: what block n may hold, if all that was
                 written to it since the last flush was whole blocks: a list of
                 generations for each of its sectors
    """

    whole = False

    def __init__(self, *args):
        super().__init__(*args)
        self.states = {}

    def begin(self, b0, nr, gen):
        super().begin(b0, nr, gen)
        for n in range(b0 // PER_BLOCK, -(-(b0 + nr) // PER_BLOCK)):
            self.states.pop(n, None)

    def crash(self):
        if self.whole:
            for n in {b // PER_BLOCK for b in self.hist}:
                self._note_states(n)
        return super().crash()

    def _note_states(self, n):
        """All sectors of the block must have the same history."""
        h = [self.hist.get(b) for b in range(n * PER_BLOCK,
                                             (n + 1) * PER_BLOCK)]
        self.states.pop(n, None)
        if None in h:
            return
        serials = [[serial for serial, _ in x] for x in h]
        if any(s != serials[0] for s in serials) or \
           len(set(serials[0])) < len(serials[0]) - 1:
            return
        self.states[n] = [[x[i][1] for x in h] for i in range(len(h[0]))]

    def _place(self, b, sector):
        return 'sector %d (of block %d)' % (b, b // PER_BLOCK)

    def check(self, b0, data, pin=False):
        return self._check_whole(b0, data, pin) or \
            super().check(b0, data, pin)

    def _check_whole(self, b0, data, pin):
        if not self.states:
            return None
        last = (b0 + len(data) // SECTOR) // PER_BLOCK
        for n in range(-(-b0 // PER_BLOCK), last):
            if n in self.states:
                at = (n * PER_BLOCK - b0) * SECTOR
                wrong = self._check_one(n, data[at:at + BLOCK])
                if wrong:
                    self.wrong_at = self.wrong_at or (
                        n * PER_BLOCK, data[at:at + BLOCK])
                    return wrong
                if pin:
                    del self.states[n]
        return None

    def _check_one(self, n, got):
        for gens in self.states[n]:
            if got == b''.join(self.bytes_of(n * PER_BLOCK + i, g)
                               for i, g in enumerate(gens)):
                return None
        return 'sectors %d to %d are torn: %s; each may be one of %s' % (
            n * PER_BLOCK, (n + 1) * PER_BLOCK - 1,
            ', '.join(describe(got[i:i + SECTOR])
                      for i in range(0, BLOCK, SECTOR)), self.states[n])


class Load(Workload):
    model_class = SectorModel
    unit = SECTOR
    # Up to 1 MiB; "big" requests are whole stripes.
    lengths = 1, 1, 2, 3, 7, 8, 8, 8, 16, 24, 64, 128, 333, 512, 2048

    def __init__(self, array, seed, whole, **how):
        super().__init__(array, seed, **how)
        self.model.whole = whole
        self.zone = 0, self.model.nr    # sectors: where requests are

    def connect(self):
        self.conns = [Client(self.array.uri) for _ in range(self.nr_conns)]

    def write_one(self):
        """Paused: a sector anywhere."""
        b = self.rng.randrange(self.model.nr)
        self.gen += 1
        self.model.begin(b, 1, self.gen)
        with self.history.during('write of %d, generation %d, alone' % (
                b, self.gen)):
            self.conns[0].pwrite(self.model.bytes_of(b, self.gen),
                                 b * SECTOR)
        self.model.end(b, 1, self.gen, True, False)

    def focus_on_all(self):
        self.zone = 0, self.model.nr

    def focus(self, r):
        """From now on on a part of the array, or on all of it."""
        nr = self.model.nr
        if r.random() < 0.5:
            first = r.randrange(nr)
            self.zone = first, min(nr, first + nr // 8 + 8)
        else:
            self.focus_on_all()

    def _range(self, kind):
        first, end = self.zone
        b0, nr = super()._range(kind)
        if end - first < self.model.nr:
            nr = min(nr, end - first)
            b0 = self.rng.randrange(first, end - nr + 1)
        return b0, nr
