# campaign.py: make many calls of bench, the most valuable ones first,
# until they are made or there is no time left.
#
# A record is a line of JSON for each call: what was asked, and the answer.  A
# later campaign that is given the records makes only the calls that are not
# in them, or that failed, on this device.
#
# SPDX-License-Identifier: BSD-3-Clause

import json
import re
import shlex
import time

from benchlib import modes, options, table, variants
from benchlib.experiments import whole
from benchlib.server import Failed, Late, Server

LISTS = ('rows', 'model', 'xors', 'crossover')


class Unable(Failed):
    """What a call depends on is not there."""


def rows_of(records, name):
    return [r for record in records if record['name'] == name
            for key in LISTS for r in record['top'].get(key, [])]


# What {names} in the arguments of a call stand for.

def join(names, what):
    if not names:
        raise Unable(f'no variant was measured of {what}')
    return ','.join(dict.fromkeys(names))


def fill(args, m, records):
    """The arguments, with the variants that earlier calls found."""
    raw = variants.raw(rows_of(records, 'V1'), m)
    overall = variants.overall(rows_of(records, 'V2'), m)

    def names(*seeds):
        return [n for seed in seeds for n in raw.get(seed, [])]

    def candidates(*seeds):
        """For other pipelines: also the paper's own last stage."""
        return [n for seed in seeds for n in names(seed)[:1] + [seed]]

    def value(match):
        what = match[1]
        if what == 'seeds':
            return join(names(*variants.SEEDS[:-1]), what)
        if what == 'best':
            return join([n for seed in variants.SEEDS[:-1]
                         for n in names(seed)[:1]], what)
        if what == 'sobe':
            return join(names('sobe_cl')[:1], what)
        if what == 'rs':
            return join(candidates('rscode'), what)
        if what == 'crs':
            return join(candidates(*variants.CRS[:-1]), what)
        seed = what.removeprefix('overall_')
        if seed not in overall:
            raise Unable(f'no variant was measured of {seed}')
        return f'{overall[seed][0]} --slices {overall[seed][1]}'

    return re.sub(r'{(\w+)}', value, args)


def tiny(args):
    """One value of everything, to try a call."""
    for name in '-k', '-w', '--pairs', '--slices', '--threads':
        args = re.sub(rf'(?<= ){name} (\d+(\+\d+)?)\S*', rf'{name} \1', args)
    return (f'{args} --samples 1 --seconds 0 --memory 256K --cell 3840 '
            '--threads 1' + (' --sustained 0.1' if '--sustained' in args
                             else ''))


def open_to_add(path):
    """After a line that was cut off, in a line of its own."""
    f = open(path, 'a+')
    f.seek(0)
    text = f.read()
    if text and not text.endswith('\n'):
        f.write('\n')
    return f


def is_whole(record):
    return not record['partial'] and 'failed' not in record


class Campaign:
    def __init__(self, program, budget, path, records, is_tiny=False):
        """records: of earlier campaigns.  Those of this one are in made, and
        in the file."""
        self.program = program
        self.end = time.monotonic() + budget
        self.file = open_to_add(path)
        self.made = []
        self.tiny = is_tiny
        self.server = Server(program, deadline=self.end)
        name = self.server.ask('device').get('name') if budget > 0 else None
        self.before = [r for r in records
                       if r['top'].get('device', name) == name]

    def is_done(self, name, args):
        return any(r['name'] == name and r['args'] == args and is_whole(r)
                   for r in self.before)

    def call(self, name, call):
        """Make it and record it.  Late: it was cut off."""
        record = {'name': name, 'args': call.args, 'partial': False,
                  'at': time.strftime('%Y-%m-%d %H:%M')}
        report, start = table.Report(True), time.monotonic()
        late = None
        if self.server.broken:
            # A device may be of no use any more after an error of a kernel.
            self.server.end()
            self.server = Server(self.program, deadline=self.end)
        try:
            args = whole(fill(call.args, call.m, self.before + self.made))
            record['made'] = args
            if self.tiny:
                args = tiny(args)
            self.need(call.devices)
            modes.run(options.parse(shlex.split(args)), self.server, report)
        except Late as e:
            record['partial'], late = True, e
        except Unable as e:
            record['failed'] = str(e)
        except Failed as e:
            record['failed'], self.server.broken = str(e), True
        except (Exception, SystemExit) as e:
            # A mistake of ours must not cost the time of all other calls.
            record['failed'] = f'{type(e).__name__}: {e}'
            self.server.broken = True
        record['top'] = report.top
        record['seconds'] = round(time.monotonic() - start, 2)
        self.keep(record)
        if late:
            raise late
        return record

    def need(self, devices):
        if devices > 1:
            nr = self.server.ask('device').get('nr', 0)
            if nr < devices:
                raise Unable(f'for {devices} CUDA devices, here there are '
                             f'{nr}')

    def keep(self, record):
        self.made.append(record)
        print(json.dumps(record), file=self.file, flush=True)

    def run(self, parts, say):
        """parts: experiments and tables.  The number of calls that are left."""
        todo = sorted(((call.rank, n, p.name, call)
                       for n, p in enumerate(parts) for call in p.calls
                       if not self.is_done(p.name, call.args)),
                      key=lambda t: t[:2])
        for n, (_, _, name, call) in enumerate(todo):
            try:
                record = self.call(name, call)
            except Late:
                return len(todo) - n
            nr = len([r for key in LISTS for r in record['top'].get(key, [])])
            why = f': {record["failed"]}' if 'failed' in record else ''
            say(f'{name}: {nr} rows, {record["seconds"]:.1f} s: '
                f'{record.get("made", call.args)}{why}')
        return 0


def read(paths):
    """The records of these files; a line that was cut off does not count."""
    records = []
    for path in paths:
        with open(path) as f:
            for line in f:
                try:
                    records.append(json.loads(line))
                except json.JSONDecodeError:
                    continue
    return records


def best_records(records):
    """Of calls that were made more than once on a device the last whole
    one."""
    found = {}
    for r in records:
        key = r['name'], r['args'], r['top'].get('device')
        if key not in found or is_whole(r) or not is_whole(found[key]):
            found[key] = r
    return list(found.values())
