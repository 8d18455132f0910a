"""gpuraid: the largest load on an array, with what it writes verified.

Most of it is fio, a process for each job, since Python would be the
bottleneck.  A job owns a range of the export, and goes over it again and
again: it writes all of it with a pattern that no pass had before, or trims all
of it, and then reads all of it and compares.  So a block that is old, or of
another place, is wrong too.

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

# Of requests: fio's option for their bytes, and how many there are at a time.
# The pattern begins anew with each, and blocks of one row must not be alike, or
# their parity would be the same for all patterns: so not all have one length.
KINDS = (('--bssplit=4k/80:8k/10:12k/10', 32),
         ('--bssplit=4k/80:8k/10:12k/10', 32),
         ('--bssplit=16k/40:32k/30:48k/30', 8),
         ('--bs=1M', 4))
PATTERN = 501           # with that number 509, a prime: sectors differ
AT = 200                # where the number of the request's first byte is
TELL = 10               # seconds: fio says how far it is


class Pass:
    """One run of fio over the range of a job.  See run."""

    def __init__(self, job, rw, *options):
        self.job = job
        self.what = '%s of %s%s' % (
            rw, job.name, ', read again' if '--verify_only' in options else '')
        self.report = os.path.join(job.folder, job.name + '.json')
        self.log = os.path.join(job.folder, job.name + '.log')
        if os.path.exists(self.report):
            os.unlink(self.report)
        with open(self.log, 'wb') as log:
            self.process = subprocess.Popen(
                ['fio', '--name=' + job.name, '--thread', '--ioengine=nbd',
                 '--uri=' + job.array.uri, '--rw=' + rw,
                 '--offset=%d' % job.off, '--size=%d' % job.length,
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
        until('fio: ' + self.what, lambda: p.poll() is not None,
              self.numbers)
        if p.returncode:
            with open(self.log, errors='replace') as f:
                text = f.read()
            self.job.note_wrong(text)
            raise Failure('fio: %s: status %d: %s' % (
                self.what, p.returncode, text[-1000:].strip()))
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
        self.sizes, self.depth = KINDS[nr % len(KINDS)]
        self.rng = random.Random('job %d of %d' % (nr, seed))
        # What the range holds: zeroes, or what was written in that order.
        self.pattern = self.order = self.randseed = None
        self.quit = False
        self.thread = self.now = None
        self.wrong = self.late = None   # the failure, and whether it is one
        self.wrong_at = None            # request, byte of the export
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
        while True:             # at least once
            if self.rng.random() < 0.2:
                self._trim()
            else:
                self._write()
            self._read()
            if self.quit:
                break

    def _pass(self, rw, *options):
        self.now = Pass(self, rw, *options)
        try:
            return self.now.run()
        finally:
            self.now.end()

    def _at_random(self, rw):
        return 'rand' + rw if self.rng.random() < 0.8 else rw

    def _write(self):
        self.pattern = self.rng.randbytes(PATTERN)
        self.order = self._at_random('write')
        self.randseed = self.rng.randrange(1 << 31)
        done = self._pass(self.order, *self._pattern(), '--do_verify=0',
                          '--fsync=%d' % self.rng.choice((0, 8, 64, 512)))
        self._whole('write', done)
        self.written += self.length

    def _trim(self):
        self.pattern = None
        done = self._pass(self._at_random('trim'), '--iodepth=8', '--bs=%d' %
                          self.rng.choice((BLOCK, 16 * BLOCK, MiB)))
        self._whole('trim', done)

    def _read(self):
        if self.pattern:
            done = self._pass(self.order, *self._pattern(), '--verify_only',
                              '--verify_fatal=1')
        else:
            done = self._pass(self._at_random('read'), '--verify=pattern',
                              '--verify_pattern=0x00', '--verify_fatal=1',
                              self.sizes, '--iodepth=%d' % self.depth)
        self._whole('read', done)
        self.read += self.length
        self.verified += self.length // BLOCK

    def _whole(self, kind, done):
        """Nothing was left out."""
        if done[kind][1] != self.length:
            raise Failure('fio: %s: %s of %d bytes of %d' % (
                self.name, kind, done[kind][1], self.length))

    def _pattern(self):
        """Options: the same requests with the same content each time."""
        p = self.pattern
        return ('--verify=pattern', '--verify_state_save=0',
                '--verify_pattern=0x%s%%o0x%s' % (p[:AT].hex(), p[AT:].hex()),
                '--randseed=%d' % self.randseed, self.sizes,
                '--iodepth=%d' % self.depth)

    # -- what is wrong --------------------------------------------------

    def note_wrong(self, text):
        at = re.search(r'verify failed at .*requested block: offset=(\d+)',
                       text)
        if at:
            byte = re.search(r'bad pattern block offset (\d+)', text)
            begin = int(at[1])
            self.wrong_at = begin, begin + int(byte[1] if byte else 0)

    def expected(self, begin, off):
        """The block that begins there, of the request that began there."""
        if self.pattern is None:
            return bytes(BLOCK)
        unit = (self.pattern[:AT] + begin.to_bytes(8, 'little') +
                self.pattern[AT:])
        first = (off - begin) % len(unit)
        return (unit * (BLOCK // len(unit) + 2))[first:first + BLOCK]

    def about_wrong(self):
        """See evidence.keep; None if no content was wrong."""
        if self.wrong_at is None:
            return None
        begin, byte = self.wrong_at
        first = byte // BLOCK * BLOCK
        want = self.expected(begin, first)

        def name(off, sector):
            at = off % BLOCK
            return ('as it was written' if off - at == first and
                    sector == want[at:at + len(sector)] else
                    'zeroes' if not sector.strip(b'\0') else 'something')
        return types.SimpleNamespace(
            off=byte, got=b'', blocks=range(first // BLOCK,
                                                     first // BLOCK + 1),
            unit=BLOCK, name=name, versions={'what was written': want},
            words='%s from byte %d on: byte %d' % (
                self.name, self.off, byte))


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
