# tunings.py: compare the speed of tunings of kernels, each for one matrix.
#
# All combinations would be thousands, so there are two steps: first the work of
# a thread and the size of a block, with the rest from the coder's choice; then
# the rest, with the best of these.
#
# A device gets slower when it gets warm.  So the fastest few, and the one that
# the coder chooses, are measured again, in turn, and only that counts.
#
# SPDX-License-Identifier: BSD-3-Clause

import concurrent.futures
import os
import subprocess
import sys
import tempfile

from benchlib import cases
from benchlib.rows import VERIFY_LEN, digits, median, times_for
from benchlib.server import Failed
from benchlib.table import size

# How many are measured again, and how often.
NR_FINAL = 8
NR_ROUNDS = 3

NR_REGISTERS = 65536            # of a multiprocessor, since Volta
MAX_GROUP = 4


def parts(tuning):
    """The frame (bytes, block), and the words behind it by their kind."""
    frame, *words = tuning.split('-')
    kinds = {}
    for word in words:
        kind = 'share' if word in ('even', 'odd') else word.rstrip('0123456789')
        kinds[kind] = word
    return [int(n) for n in frame.split('x')], kinds


def text(frame, kinds):
    """In the order of bench/tuning.h."""
    return '-'.join([f'{frame[0]}x{frame[1]}'] + [
        kinds[kind] for kind in ('min', 'signed', 'g', 'share', 'mul')
        if kinds.get(kind)])


def frames(base, rows, w, packets):
    """Registers for a thread cost threads; between these values a kernel loses
    with too few registers, or wins with more threads.  0: the compiler chooses,
    then all it may have, which is not the same.  A small kernel never needs
    many."""
    kinds = parts(base)[1]
    small = rows * w <= 32
    most = 8 if packets else 16
    found = []
    for nr_bytes in (4, 8, 16):
        if nr_bytes > most or (nr_bytes == 4 and not small and most > 8):
            continue
        for block in 64, 128, 256:
            for regs in (0, 64, 40) if small else (0, 255, 170, 128, 96, 64):
                nr = 1 if regs == 255 else regs and NR_REGISTERS // block // regs
                found.append(text((nr_bytes, block),
                                  dict(kinds, min=nr and f'min{nr}')))
    return list(dict.fromkeys(found))


def sums(base, packets):
    """Signed addresses free registers, which sums take."""
    frame, kinds = parts(base)
    signed = [kinds.get('signed', ''), '' if 'signed' in kinds else 'signed']
    if packets:
        return [text(frame, dict(kinds, signed=s)) for s in signed]
    found = [text(frame, dict(kinds, signed=s, share=share,
                              mul=mul and f'mul{mul}'))
             for s in signed for share in ('', 'even', 'odd')
             for mul in (0, 2, 4, 7)]
    found += [text(frame, dict(kinds, g=f'g{g}' if g > 1 else ''))
              for g in range(1, MAX_GROUP + 1)]
    return list(dict.fromkeys(found))


class Variant:
    def __init__(self, tuning):
        self.row = {'tuning': tuning, 'chosen': False}
        self.source = self.file = None
        self.rounds = []        # of each the seconds of its samples

    def seconds(self):
        """The median of the rounds' medians; None: not measured."""
        if not self.rounds or self.row.keys() & {'skipped', 'wrong'}:
            return None
        return median([median(r) for r in self.rounds])

    def key(self):
        """The measured ones first, sorted by speed."""
        return self.seconds() is None, self.seconds() or 0


class Case:
    """A matrix, its cells on the device, and what was tried."""

    def __init__(self, bench, request, folder):
        self.bench, self.server, self.folder = bench, bench.server, folder
        self.run = self.server.need('open', **dict(request,
                                                   engine='kernel-any'))
        self.packets = self.run['code'] == 'crs'
        self.k, self.m = request['k'], request['m']
        self.data = self.k * self.run['cell'] * self.run['rects']
        self.op = f'decode {self.run["rows"]}' \
            if request.keys() & {'lose', 'lost'} else 'encode'
        c = bench.machine.ceilings()
        self.ceiling = c['copy'] * self.k / (self.k + self.run['rows'])
        self.all = []

    def ask(self, do, variant, **request):
        answer = self.server.ask(do, id=self.run['id'], metric='raw',
                                 **request)
        for answered, key in ('failed', 'skipped'), ('wrong', 'wrong'):
            if answered in answer:
                variant.row[key] = answer[answered]
                return None
        return answer

    def say(self, what, done, nr):
        """Progress, to a terminal."""
        if sys.stderr.isatty():
            print(f'\r\033[K{self.k}+{self.m}: {what} {done} of {nr}',
                  end='' if done < nr else '\r\033[K', file=sys.stderr,
                  flush=True)

    def add(self, tunings):
        """New variants of those, with their text, unless there is the same."""
        new = []
        for tuning in tunings:
            if any(v.row['tuning'] == tuning for v in self.all):
                continue
            v = Variant(tuning)
            self.all.append(v)
            answer = self.ask('source', v, tuning=tuning)
            source = answer and answer['source']
            same = next((o for o in self.all
                         if source and o.source == source), None)
            if same:
                v.row['skipped'] = f'the same text as {same.row["tuning"]}'
            elif source:
                v.source = source
                v.file = os.path.join(self.folder, tuning)
                new.append(v)
        return new

    def compile(self, v):
        with open(v.file, 'wb') as out:
            done = subprocess.run(
                [self.server.program, '--compile',
                 str(self.bench.machine.device()['arch'])],
                input=v.source.encode(), stdout=out, stderr=subprocess.PIPE)
        if self.bench.opts.verbose:
            sys.stderr.buffer.write(done.stderr)
        if done.returncode != 0:
            v.row['skipped'] = 'could not be compiled'

    def use(self, v):
        answer = self.ask('use', v, tuning=v.row['tuning'], file=v.file)
        if answer:
            v.row['registers'] = answer['registers']
            v.row['local'] = answer['local']
        return answer

    def measure_once(self, v):
        """A round, of the kernel in use."""
        opts = self.bench.opts
        try:
            times = times_for(self.server, self.run['id'], 'raw', opts.seconds)
        except Failed as e:
            v.row['skipped'] = str(e)
            return None
        answer = self.ask('sample', v, nr=opts.samples, times=times)
        return answer and answer['seconds']

    def try_all(self, tunings):
        """Compile them, several at a time, and measure each by itself."""
        new = self.add(tunings)
        with concurrent.futures.ThreadPoolExecutor(
                self.bench.opts.threads[0]) as pool:
            for n, _ in enumerate(pool.map(self.compile, new)):
                self.say('compiled', n + 1, len(new))
        for n, v in enumerate(new):
            if 'skipped' not in v.row and self.use(v) and \
               self.ask('sample', v) and \
               self.ask('check', v, bytes=VERIFY_LEN) is not None:
                found = self.measure_once(v)
                v.rounds = [found] if found else []
            self.say('measured', n + 1, len(new))

    def measure_again(self):
        """A variant that fails now keeps what it has."""
        self.all.sort(key=Variant.key)
        again = [v for n, v in enumerate(self.all) if v.seconds() is not None
                 and (n < NR_FINAL or v.row['chosen'])]
        found = {id(v): [] for v in again}
        for n in range(NR_ROUNDS):
            for v in again:
                before = dict(v.row)
                taken = self.use(v) and self.measure_once(v)
                v.row = before
                if taken:
                    found[id(v)].append(taken)
            self.say('measured again', n + 1, NR_ROUNDS)
        for v in again:
            if len(found[id(v)]) == NR_ROUNDS:
                v.rounds = found[id(v)]
        self.all.sort(key=Variant.key)

    def sweep(self, asked):
        tuning = self.server.need('tunes', id=self.run['id'])['tuning']
        self.try_all([tuning] + (asked or []))
        self.all[0].row['chosen'] = True
        if not asked:
            rows, w = self.run['rows'], self.run['w']
            self.all.sort(key=Variant.key)
            self.try_all(frames(self.all[0].row['tuning'], rows, w,
                                self.packets))
            self.all.sort(key=Variant.key)
            self.try_all(sums(self.all[0].row['tuning'], self.packets))
        self.measure_again()
        self.server.need('close', id=self.run['id'])

    def rows(self):
        for v in self.all:
            seconds = v.seconds()
            if seconds is not None:
                every = [s for r in v.rounds for s in r]
                rate = self.data / seconds
                v.row['seconds'] = digits(seconds)
                v.row['gb_per_s'] = digits(rate / 1e9)
                v.row['share'] = digits(rate / self.ceiling)
                v.row['spread'] = digits((max(every) - min(every)) / seconds)
            yield v.row


def show(report, case, rows):
    run = case.run
    w = f' w {run["w"]}' if case.packets else ''
    report.line(f'\n{case.op}, {case.k}+{case.m}, {run["code"]}{w}, cells of '
                f'{size(run["cell"])}, {run["rects"]} rects (* is what '
                f'kernel_tune chooses)\n  {"tuning":36} {"regs":>5} '
                f'{"local":>6} {"GB/s":>9} {"share":>6} {"spread":>6}')
    for r in rows:
        line = f'{"*" if r["chosen"] else " "} {r["tuning"]:36} ' \
            f'{r.get("registers", "-"):>5} {r.get("local", "-"):>6} '
        if 'gb_per_s' in r:
            line += f'{r["gb_per_s"]:9.3f} {r["share"]:6.1%} {r["spread"]:6.1%}'
        elif 'wrong' in r:
            line += 'WRONG: ' + r['wrong']
        else:
            line += '- ' + r['skipped']
        report.line(line)


def run(bench, report):
    for tuning in bench.opts.tuning or []:
        answer = bench.server.ask('engine', engine=f'kernel:{tuning}')
        if 'failed' in answer:
            raise cases.Usage(f'--tuning: {answer["failed"]}')
    device, ceilings = bench.machine.device(), bench.machine.ceilings()
    for answer in device, ceilings:
        if 'failed' in answer:
            raise Failed(f'--tunings: {answer["failed"]}')
    report.add('device_copy', round(ceilings['copy'] / 1e9, 2))
    report.top['tunings'] = found = []
    for request in cases.cases(bench.opts, bench.machine, ['kernel']):
        with tempfile.TemporaryDirectory(prefix='gpuraid-bench.') as folder:
            case = Case(bench, request, folder)
            case.sweep(bench.opts.tuning)
        rows = list(case.rows())
        found.append({
            'op': case.op, 'code': case.run['code'], 'k': case.k, 'm': case.m,
            'w': case.run['w'], 'cell': case.run['cell'],
            'rects': case.run['rects'],
            'ceiling_gb_per_s': digits(case.ceiling / 1e9), 'rows': rows})
        show(report, case, rows)
    every = [r for c in found for r in c['rows']]
    wrong = [r for r in every if 'wrong' in r]
    if wrong:
        raise Failed(f'--tunings: {wrong[-1]["tuning"]}: {wrong[-1]["wrong"]}')
    if not any('gb_per_s' in r for r in every):
        raise Failed('--tunings: nothing could be measured: '
                     f'{every[-1]["tuning"]}: {every[-1]["skipped"]}')
