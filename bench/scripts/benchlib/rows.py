# rows.py: measure cases, and make rows of them.
#
# SPDX-License-Identifier: BSD-3-Clause

import math

from benchlib import cases, sustain
from benchlib.server import Failed

VERIFY_LEN = 1 << 20            # compared before a case is timed

# Latencies that are taken in turn: the number of turns; the first of each,
# while processors and device wake up, do not count.
NR_LATENCIES = 1000
LATENCY_TURNS = 20
LATENCY_COLD = 8


def digits(x):
    """Further ones are noise."""
    return float(f'{x:.6g}')


def median(samples):
    return sorted(samples)[len(samples) // 2]


def times_for(server, run, metric, seconds):
    """How often to code everything in a sample, which is to take this many
    seconds.  It is warm then."""
    once = server.need('sample', id=run, metric=metric, nr=2)['seconds'][-1]
    return min(max(math.ceil(seconds / max(once, 1e-6)), 1), 100000)


class Entry:
    """A row in the making: an open case, by one metric."""

    def __init__(self, bench, request, run, metric):
        self.bench = bench
        self.server = bench.server
        self.about = bench.machine.engines[request['engine'].split(':')[0]]
        self.request = request
        self.run = run
        self.metric = metric
        self.seconds, self.cpu, self.times = [], 0, 1
        self.sustained = None
        self.row = self.describe()

    def describe(self):
        q, run = self.request, self.run or {}
        code = self.about['code'] or q['code']
        op = 'encode'
        if q.keys() & {'lose', 'lost'}:
            op = f'decode {run["rows"]}' if run else 'decode'
        return {
            'engine': q['engine'], 'op': op,
            'metric': 'memory' if self.about['in_memory'] else self.metric,
            'code': code, 'k': q['k'], 'm': q['m'],
            'w': run.get('w', q.get('w', 8 if code == 'rs' else 0)),
            'cell': run.get('cell', q['cell']),
            'rects': run.get('rects', q['rects']),
            'threads': q['threads'] if self.about['uses_threads'] else 0,
            'slices': q['slices'],
        }

    def is_measured(self):
        return not self.row.keys() & {'skipped', 'wrong'}

    def ask(self, do, **request):
        """None: the row says why it is skipped."""
        answer = self.server.ask(do, id=self.run['id'], metric=self.metric,
                                 **request)
        if 'failed' in answer:
            self.row['skipped'] = answer['failed']
            self.server.broken = True
            return None
        return answer

    def check(self, nr_bytes):
        answer = self.ask('check', bytes=nr_bytes)
        if answer and 'wrong' in answer:
            self.row['wrong'] = answer['wrong']

    def begin(self, opts):
        try:
            self.times = times_for(self.server, self.run['id'], self.metric,
                                   0 if opts.latency else opts.seconds)
            if opts.latency:
                self.ask('sample', nr=NR_LATENCIES // 10)
        except Failed as e:
            self.row['skipped'] = str(e)

    def take(self, nr, cold=0):
        if cold and self.is_measured():
            self.ask('sample', nr=cold)
        answer = self.is_measured() and \
            self.ask('sample', nr=nr, times=self.times)
        if answer:
            self.seconds += answer['seconds']
            self.cpu += answer['cpu']
            self.row['note'] = answer['note']

    def sustain(self, seconds):
        if self.is_measured() and self.metric == 'raw' and \
           not self.about['in_memory']:
            self.sustained = sustain.measure(self, seconds)

    def end(self, opts):
        note = self.row.pop('note', '')
        if self.is_measured() and opts.latency:
            self.latency()
        elif self.is_measured() and not opts.verify_only:
            self.rate()
        if note:
            self.row['note'] = note

    def latency(self):
        s = sorted(self.seconds)
        for name, at in (('p50', len(s) // 2), ('p90', len(s) * 9 // 10),
                         ('p99', len(s) * 99 // 100), ('min', 0),
                         ('max', -1)):
            self.row[name + '_us'] = digits(s[at] * 1e6)

    def rate(self):
        row, rows = self.row, self.run['rows']
        data = row['k'] * row['cell'] * row['rects']
        seconds = max(median(self.seconds), 1e-9)
        rate = data / seconds
        ceiling = self.bench.machine.ceiling(self.about, self.metric,
                                             row['threads'], row['k'], rows)
        row['seconds'] = digits(seconds)
        row['gb_per_s'] = digits(rate / 1e9)
        row['all_gb_per_s'] = digits(rate * (row['k'] + rows) / row['k'] / 1e9)
        if ceiling:
            row['ceiling_gb_per_s'] = digits(ceiling / 1e9)
            row['share'] = digits(rate / ceiling)
        if self.metric == 'overall' or self.about['in_memory']:
            row['cpu_s_per_gb'] = digits(
                self.cpu / len(self.seconds) / self.times / data * 1e9)
        row['spread'] = digits((max(self.seconds) - min(self.seconds)) /
                               seconds)
        if self.sustained:
            self.sustained_rate(data, ceiling)

    def sustained_rate(self, data, ceiling):
        seconds, clock, power = self.sustained
        rate = data / max(seconds, 1e-9)
        self.row['sustained_gb_per_s'] = digits(rate / 1e9)
        if ceiling:
            self.row['sustained_share'] = digits(rate / ceiling)
        if clock is not None:
            self.row['clock_mhz'] = clock
            self.row['power_w'] = digits(power)


class Bench:
    """What the parts of bench/scripts/bench share."""

    def __init__(self, opts, server, machine):
        self.opts = opts
        self.server = server
        self.machine = machine

    def entries(self, request):
        """Open a case: an entry for each metric that is wanted."""
        run = self.server.ask('open', **request)
        if 'failed' in run:
            entry = Entry(self, request, None, '')
            entry.row['skipped'] = run['failed']
            return [entry]
        about = self.machine.engines[request['engine'].split(':')[0]]
        return [Entry(self, request, run, metric) for metric in run['metrics']
                if about['in_memory'] or getattr(self.opts, metric)]

    def measure(self, group):
        """The rows of cases that are open at the same time."""
        opts = self.opts
        entries = [e for q in group for e in self.entries(q)]
        for e in entries:
            if e.is_measured():
                e.check(0 if opts.verify_only else VERIFY_LEN)
            if e.is_measured() and not opts.verify_only:
                e.begin(opts)
        if opts.in_turn and not opts.verify_only:
            self.take_turns(entries)
        elif not opts.verify_only:
            for e in entries:
                e.take(NR_LATENCIES if opts.latency else opts.samples)
                if opts.sustained:
                    e.sustain(opts.sustained)
        for e in entries:
            e.end(opts)
        for run in {e.run['id'] for e in entries if e.run}:
            self.server.need('close', id=run)
        return [e.row for e in entries]

    def take_turns(self, entries):
        latency = self.opts.latency
        for _ in range(LATENCY_TURNS if latency else self.opts.samples):
            for e in entries:
                e.take(NR_LATENCIES // LATENCY_TURNS if latency else 1,
                       LATENCY_COLD if latency else 1)

    def rows(self, names):
        """Of all cases of these engines, as they are measured."""
        for group in cases.groups(self.opts, self.machine, names):
            yield from self.measure(group)
