"""gpuraid: the largest load on an array, with what it writes verified.

Most of it is fio, a process for each job, since Python would be the
bottleneck.  A job owns a range of the export, and goes over it again and
again: it writes all of it with a pattern that no pass had before, trims all
of it, or reads all of it, at random or in order, and compares.  So a block
that is old, or of another place, is wrong too.

The Checker is a workload with a model, for what fio can't do: requests of
any length, zeroes and trims among reads and writes.

SPDX-License-Identifier: BSD-3-Clause
"""

import collections
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
import traceback
import types

from .array import BLOCK, Failure, Late, MiB, until
from .workload import Model, Workload

# The bytes of a request, and how many of them at a time.
KINDS = ((4096, 32), (4096, 32), (65536, 8), (MiB, 4))
PATTERN = 501           # no divisor of 4096: each sector of a block differs
AT = 200                # and in it the number of the request's first byte
TELL = 10               # seconds: fio says how far it is


class Pass:
    """One run of fio over the range of a job.  See run."""

    def __init__(self, job, rw, *options):
        self.job, self.rw = job, rw
        self.report = os.path.join(job.folder, job.name + '.json')
        self.log = os.path.join(job.folder, job.name + '.log')
        if os.path.exists(self.report):
            os.unlink(self.report)
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(
                ['fio', '--name=' + job.name, '--thread', '--ioengine=nbd',
                 '--uri=' + job.array.uri, '--rw=' + rw,
                 '--offset=%d' % job.off, '--size=%d' % job.length,
                 '--randseed=%d' % job.rng.randrange(1 << 31),
                 '--status-interval=%d' % TELL, '--eta=never',
                 '--output-format=json', '--output=' + self.report,
                 *options],
                cwd=job.folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log)

    def numbers(self):
        """Of read, write and trim: requests and bytes, until now."""
        last = {}
        try:
            with open(self.report) as f:
                text = f.read()
            at = text.find('{')
            while at >= 0:
                last, end = json.JSONDecoder().raw_decode(text, at)
                at = text.find('{', end)
        except (OSError, ValueError):
            pass                # not written yet, or not to the end
        job = (last.get('jobs') or [{}])[0]
        return {kind: (job[kind]['total_ios'], job[kind]['io_bytes'])
                for kind in ('read', 'write', 'trim') if kind in job}

    def run(self):
        """Until it has ended; Failure if something was wrong.  Its numbers."""
        p = self.process
        until('fio: %s of %s' % (self.rw, self.job.name),
              lambda: p.poll() is not None, self.numbers)
        if p.returncode:
            with open(self.log, errors='replace') as f:
                text = f.read()
            self.job.note_wrong(text)
            raise Failure('fio: %s of %s: status %d: %s' % (
                self.rw, self.job.name, p.returncode, text[-1000:].strip()))
        return self.numbers()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Job:
    """Passes over a range, in a thread: start, stop, verify."""

    def __init__(self, array, nr, off, length, seed):
        self.array, self.folder = array, array.folder
        self.name = 'job-%d' % nr
        self.off, self.length = off, length
        self.bs, self.depth = KINDS[nr % len(KINDS)]
        self.rng = random.Random('job %d of %d' % (nr, seed))
        self.pattern = None             # what the range holds; None: zeroes
        self.quit = False
        self.thread = self.now = None
        self.wrong = self.late = None   # the failure, and whether it is one
        self.wrong_at = None            # a byte of the export
        self.written = self.read = self.verified = 0    # bytes

    def start(self):
        self.quit = False
        self._begin(self._again_and_again)

    def stop(self):
        """After the pass that runs now."""
        self.quit = True

    def verify(self):
        """Read all, in the thread: see join."""
        self._begin(self._read)

    def join(self):
        self.thread.join()
        self.look()

    def look(self):
        if self.wrong:
            raise (Late if self.late else Failure)(self.wrong)

    def end(self):
        """At once, after a failure."""
        self.quit = True
        if self.now:
            self.now.end()
        if self.thread:
            self.thread.join(5)

    def _begin(self, call):
        self.thread = threading.Thread(target=self._main, args=(call,),
                                       daemon=True)
        self.thread.start()

    def _main(self, call):
        try:
            call()
        except Failure as e:
            self.wrong, self.late = str(e), isinstance(e, Late)
        except Exception:       # any: the main thread must hear of it
            self.wrong = traceback.format_exc()

    def _again_and_again(self):
        while not self.quit:
            if self.rng.random() < 0.2:
                self._trim()
            else:
                self._write()
            self._read()

    def _pass(self, rw, *options):
        self.now = Pass(self, rw, *options)
        try:
            return self.now.run()
        finally:
            self.now.end()

    def _order(self, rw):
        """At random or in order."""
        return 'rand' + rw if self.rng.random() < (
            0.8 if self.bs < MiB else 0.2) else rw

    def _sizes(self):
        return '--bs=%d' % self.bs, '--iodepth=%d' % self.depth

    def _write(self):
        self.pattern = self.rng.randbytes(PATTERN)
        loops = self.rng.choice((1, 1, 2, 3))
        done = self._pass(self._order('write'), *self._sizes(),
                          '--loops=%d' % loops, '--do_verify=0',
                          '--fsync=%d' % self.rng.choice((0, 8, 64, 512)),
                          *self._verify())
        self.written += done['write'][1]

    def _trim(self):
        self.pattern = None
        bs = self.rng.choice((BLOCK, 16 * BLOCK, MiB))
        self._pass(self._order('trim'), '--bs=%d' % bs, '--iodepth=8')

    def _read(self):
        done = self._pass(self._order('read'), *self._sizes(),
                          '--verify_fatal=1', *self._verify())
        if done['read'][1] != self.length:
            raise Failure('fio: %s read %d bytes of %d' % (
                self.name, done['read'][1], self.length))
        self.read += self.length
        self.verified += self.length // BLOCK

    def _verify(self):
        p = self.pattern
        return ('--verify=pattern', '--verify_state_save=0',
                '--verify_pattern=' + (
                    '0x%s%%o0x%s' % (p[:AT].hex(), p[AT:].hex()) if p
                    else '0x00'))

    # -- what is wrong --------------------------------------------------

    def note_wrong(self, text):
        at = re.search(r'verify failed at .*requested block: offset=(\d+)',
                       text)
        if at:
            byte = re.search(r'bad pattern block offset (\d+)', text)
            self.wrong_at = int(at[1]) + int(byte[1] if byte else 0)

    def expected(self, off):
        """The block of the export that begins there."""
        if self.pattern is None:
            return bytes(BLOCK)
        inside = (off - self.off) % self.bs
        unit = (self.pattern[:AT] + (off - inside).to_bytes(8, 'little') +
                self.pattern[AT:])
        first = inside % len(unit)
        return (unit * (BLOCK // len(unit) + 2))[first:first + BLOCK]

    def about_wrong(self):
        """See evidence.keep; None if no content was wrong."""
        if self.wrong_at is None:
            return None
        first = self.wrong_at // BLOCK * BLOCK
        want = self.expected(first)

        def name(off, sector):
            at = off % BLOCK
            return ('as it was written' if off - at == first and
                    sector == want[at:at + len(sector)] else
                    'zeroes' if not sector.strip(b'\0') else
                    'something else: %s' % sector[:8].hex())
        return types.SimpleNamespace(
            off=self.wrong_at, got=b'', blocks=range(first // BLOCK,
                                                     first // BLOCK + 1),
            unit=BLOCK, name=name, versions={'what was written': want},
            words='%s, in requests of %d bytes from byte %d on: byte %d' % (
                self.name, self.bs, self.off, self.wrong_at))


class CountingModel(Model):
    checked = 0

    def check(self, b0, data, pin=False):
        wrong = super().check(b0, data, pin)
        self.checked += len(data) // self.unit
        return wrong


class Checker(Workload):
    """On the first bytes of the export."""

    model_class = CountingModel

    def __init__(self, array, length, seed):
        super().__init__(types.SimpleNamespace(
            size=length, k=array.k, chunk=array.chunk, uri=array.uri,
            wrong_at=None), seed, depth=32)
        self.bytes = collections.Counter()

    def _finish(self, op):
        if op in self.in_flight and op.err == 0:
            self.bytes[op.kind] += op.nr * self.unit
        super()._finish(op)


class Load:
    """A checker and a number of jobs, which share the export."""

    def __init__(self, array, nr_jobs, seed):
        own = min(16 * MiB, array.size // (nr_jobs + 1)) // MiB * MiB
        # An odd number of blocks: jobs have parts of stripes in common.
        first = own + BLOCK
        each = (array.size - first) // nr_jobs // MiB * MiB
        if not own or not each:
            raise Failure('%d jobs are too many for %d bytes' % (
                nr_jobs, array.size))
        self.checker = Checker(array, own, seed)
        self.jobs = [Job(array, i, first + i * each, each, seed)
                     for i in range(nr_jobs)]
        self.last = time.monotonic()

    def start(self):
        self.checker.start()
        for j in self.jobs:
            j.start()

    def stop(self):
        """All of it, with nothing in flight."""
        for j in self.jobs:
            j.stop()
        self.checker.pause()
        self.checker.flush()
        for j in self.jobs:
            j.join()

    def verify(self):
        """Stopped: every byte of all ranges."""
        for j in self.jobs:
            j.verify()
        self.checker.read_all()
        for j in self.jobs:
            j.join()

    def look(self):
        """Raises what was wrong until now."""
        self.checker.raise_wrong()
        for j in self.jobs:
            j.look()

    def is_wrong(self):
        """And not only late."""
        return bool(self.checker.wrong or self.checker.model.wrong_at or any(
            j.wrong and not j.late for j in self.jobs))

    def close(self):
        self.checker.abandon()
        for j in self.jobs:
            j.end()

    def about_wrong(self):
        return next(filter(None, [self.checker.about_wrong(), *(
            j.about_wrong() for j in self.jobs)]), None)

    def written(self):
        return self.checker.bytes['write'] + sum(
            j.written for j in self.jobs)

    def read(self):
        c = self.checker.model.checked * self.checker.unit
        return c + sum(j.read for j in self.jobs)

    def verified(self):
        """Blocks."""
        return self.checker.model.checked + sum(
            j.verified for j in self.jobs)
