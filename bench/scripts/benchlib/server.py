# server.py: ask gpuraid-bench, and remember what the machine can do.
#
# SPDX-License-Identifier: BSD-3-Clause

import json
import subprocess
import threading
import time

from benchlib import power


class Failed(Exception):
    """One line that says why."""


class Late(Failed):
    """There is no time left."""


# After the deadline, seconds that an answer may take before the program is
# killed.
GRACE = 30


class Server:
    """A gpuraid-bench; bench/requests/requests.h says what it can be asked."""

    def __init__(self, program, verbose=False, deadline=None):
        self.program = program
        self.deadline = deadline
        self.broken = False     # has code failed to run?
        self.kept = {}          # answers that stay as they are
        self.mask = 1           # of devices in use
        try:
            self.process = subprocess.Popen(
                [program] + (['--verbose'] if verbose else []),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        except OSError as e:
            raise Failed(f'{program}: {e.strerror} (make builds it)')

        if deadline is not None:
            self.timer = threading.Timer(
                max(deadline - time.monotonic(), 0) + GRACE, self.process.kill)
            self.timer.daemon = True
            self.timer.start()

    def end(self):
        self.process.communicate()
        if self.deadline is not None:
            self.timer.cancel()

    def ask(self, do, **request):
        """Its answer, which has "failed" if it could not."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise Late('no time left')
        try:
            self.process.stdin.write(json.dumps(dict(request, do=do)) + '\n')
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ''
        if not line:
            raise Failed(f'{self.program} ended, with status '
                         f'{self.process.wait()}')
        return json.loads(line)

    def need(self, do, **request):
        """The same, but Failed if it could not."""
        answer = self.ask(do, **request)
        if 'failed' in answer:
            raise Failed(answer['failed'])
        return answer


class Machine:
    """Its description, and its ceilings, each measured when first wanted."""

    def __init__(self, server, memory, mask):
        self.server = server
        self.memory = memory
        self.about = server.need('machine')
        self.engines = {e['name']: e for e in self.about['engines']}
        if mask != server.mask:
            server.need('devices', mask=mask)
            server.mask = mask

    def device(self):
        return self.keep('device', {})

    def ceilings(self):
        """GPU: bytes a second, or "failed"."""
        return self.keep('ceilings', {'memory': self.memory})

    def memcpy(self, threads):
        return self.keep('memcpy', {'memory': self.memory,
                                    'threads': threads})['copy']

    def keep(self, do, request):
        kept, key = self.server.kept, (do, self.server.mask,
                                       tuple(request.items()))
        if key not in kept:
            kept[key] = self.server.ask(do, **request)
        return kept[key]

    def nvml(self):
        """Of the device; power.Absent: why not."""
        kept, key = self.server.kept, ('nvml', self.server.mask)
        if key not in kept:
            try:
                kept[key] = power.Nvml(self.device().get('bus'))
            except power.Absent as e:
                kept[key] = e
        if isinstance(kept[key], power.Absent):
            raise kept[key]
        return kept[key]

    def meter(self):
        """None without NVML."""
        try:
            return power.Meter(self.nvml())
        except power.Absent:
            return None

    def ceiling(self, engine, metric, threads, k, rows):
        """Data bytes a second, when k cells become rows cells; 0: none."""
        if engine['in_memory']:
            return self.memcpy(threads) * k / (k + rows)
        # No ceiling applies to both together, and of others it is not known
        # what they run on.
        c = self.ceilings() if engine['gpu'] else {'failed': ''}
        if 'failed' in c or engine['uses_threads']:
            return 0
        if metric == 'raw':
            return c['copy'] * k / (k + rows)
        # The slowest of the three: all in, all out, all together.
        return k / max(k / c['h2d'], rows / c['d2h'], (k + rows) / c['both'])
