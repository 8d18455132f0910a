#!/usr/bin/python3
# test-bench-campaign: what bench-gpu decides: which variants of the
# published systems are compared, what is measured first and what not again,
# the figures after some seconds, the tables
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer
# run-tests: inputs=bench,cli,common,gf,gpu,measure,Makefile,scripts,tests/fake-cuda

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, 'bench/scripts'))

from benchlib import (campaign, cases, experiments, options,  # noqa: E402
                      papers, power, rows, sustain, tables, variants)
from benchlib.server import Late, Machine, Server  # noqa: E402

PROGRAM = os.path.join(os.environ.get('OUT', TOP), 'gpuraid-bench')

NVML = '''
#include <stdio.h>
#include <string.h>
struct info { char a[16]; unsigned domain, bus, device, id, sub; char b[32]; };
int nvmlInit_v2 (void) { return 0; }
int nvmlDeviceGetCount_v2 (unsigned *n) { *n = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2 (unsigned i, void **p)
{ *p = (void *) (long) (i + 1); return 0; }
int nvmlDeviceGetPciInfo_v3 (void *p, struct info *i)
{ memset (i, 0xff, sizeof *i); i->bus = 15 + (long) p; return 0; }
int nvmlSystemGetDriverVersion (char *s, unsigned len)
{ snprintf (s, len, "580.1"); return 0; }
int nvmlDeviceGetEnforcedPowerLimit (void *p, unsigned *mw)
{ *mw = 700000; return 0; }
int nvmlDeviceGetClockInfo (void *p, int which, unsigned *mhz)
{ *mhz = which == 1 ? 1700 + (long) p : 0; return 0; }
int nvmlDeviceGetPowerUsage (void *p, unsigned *mw)
{ *mw = 690500; return (long) p == 3 ? 999 : 0; }
'''


def row(engine, rate, **more):
    return dict({'engine': engine, 'op': 'encode', 'metric': 'raw', 'k': 10,
                 'm': 4, 'slices': 0, 'gb_per_s': rate}, **more)


class Variants(unittest.TestCase):
    ROWS = [row('gcrs', 1301), row('gcrs:no-branchless', 1452),
            row('gcrs:one-pass', 1310), row('gcrs:base', 200),
            row('gcrs:4-launch', 1400, m=2), row('gmpe:16', 449),
            row('rscode:2gpus', 9000), row('rscode:maxar', 300),
            row('smpe:32', 0, skipped='no', gb_per_s=0), row('kernel', 2930)]

    def test_raw(self):
        """The fastest two of those that are close to the fastest."""
        rows_ = [r for r in self.ROWS if 'skipped' not in r]
        self.assertEqual(variants.raw(rows_, 4), {
            'rscode': ['rscode:maxar'], 'gmpe': ['gmpe:16'],
            'gcrs': ['gcrs:no-branchless', 'gcrs:one-pass']})
        self.assertEqual(variants.raw(rows_, 2), {'gcrs': ['gcrs:4-launch']})
        self.assertEqual(variants.raw(rows_, 8), {})

    def test_overall(self):
        self.assertEqual(variants.overall(
            [row('gcrs', 30, metric='overall', slices=s) | {'gb_per_s': r}
             for s, r in ((0, 30), (4, 45), (32, 40))], 4),
            {'gcrs': ('gcrs', 4)})

    def test_beside(self):
        """By the same k, m and operation."""
        found = variants.beside([
            row('kernel', 2904), row('gcrs:no-branchless', 1452),
            row('gcrs', 1301), row('gcrs', 5000, k=11),
            row('kernel', 700, op='decode 4'), row('kernel', 1, k=12)])
        self.assertEqual([r.get('ratio') for r in found],
                         [2.0, None, None, None, None, None])
        self.assertEqual(found[0]['best_engine'], 'gcrs:no-branchless')


class Calls(unittest.TestCase):
    RECORDS = [{'name': 'V1', 'args': 'a', 'partial': False, 'top': {
        'rows': Variants.ROWS[:2] + [row('rscode:maxar', 300),
                                     row('sobe_cl:direct', 500)]}},
               {'name': 'V2', 'args': 'b', 'partial': False, 'top': {
                   'rows': [row('gcrs', 45, metric='overall', slices=32)]}}]

    def fill(self, text, m=4):
        return campaign.fill(text, m, self.RECORDS)

    def test_fill(self):
        self.assertEqual(self.fill('-k 1 kernel,{seeds}'),
                         '-k 1 kernel,rscode:maxar,gcrs:no-branchless')
        self.assertEqual(self.fill('{sobe}'), 'sobe_cl:direct')
        self.assertEqual(self.fill('{rs}'), 'rscode:maxar,rscode')
        self.assertEqual(self.fill('{overall_gcrs}'), 'gcrs --slices 32')
        for text in '{seeds}', '{overall_gcrs}':
            with self.assertRaises(campaign.Unable):
                self.fill(text, 8)
        with self.assertRaises(campaign.Unable):
            self.fill('{overall_gmpe}')

    def test_all(self):
        """Every call, with names filled in, is one that bench takes,
        and none is there twice."""
        server = Server(PROGRAM)
        machine = Machine(server, 1 << 20, 1)
        for part in tables.TABLES + experiments.PAPERS:
            every = [c.args for c in part.calls]
            self.assertEqual(len(set(every)), len(every), part.name)
            for call in part.calls:
                args = re.sub(r'{overall_(\w+)}', r'\1 --slices 4', call.args)
                args = re.sub(r'{\w+}', 'gcrs,smpe:32', args)
                for text in args, campaign.tiny(f' {args}'):
                    opts = options.parse(text.split())
                    self.assertTrue(options.shapes(opts))
                    if opts.mode is None:
                        cases.engines(server, machine, opts)
        server.end()

    def test_every_k(self):
        """The few first, and in the end each once."""
        calls = experiments.every_k((1, 2, 3), '--raw', (4,))
        ks = [int(k) for c in calls
              for k in c.args.split('-k ')[1].split(',')]
        self.assertEqual(sorted(ks), list(range(4, 46)))
        self.assertEqual(ks[:4], [4, 10, 24, 45])
        self.assertEqual([c.few for c in calls][:2], [True, False])


class Runs(unittest.TestCase):
    """With the engines of the processor, in a moment."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, 'records.jsonl')

    def run_parts(self, budget, records, calls):
        part = tables.Table('x', calls, [], None)
        c = campaign.Campaign(PROGRAM, budget, self.path, records, True)
        said = []
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES=''):
            left = c.run([part], said.append)
        c.server.end()
        c.file.close()
        return left, said

    def test_order_and_resume(self):
        calls = [experiments.Call(rank, f'--engine isal -m 2 -k {k}')
                 for rank, k in ((3, 5), (1, 6), (2, 7))]
        left, said = self.run_parts(60, [], calls[:2])
        self.assertEqual(left, 0)
        self.assertEqual([s.split()[-1] for s in said], ['6', '5'])
        records = campaign.read([self.path])
        self.assertEqual([len(r['top']['rows']) for r in records], [1, 1])
        left, said = self.run_parts(60, records, calls)
        self.assertEqual([s.split()[-1] for s in said], ['7'])
        # What another device did is not done here.
        records[0]['top']['device'] = 'another'
        left, said = self.run_parts(60, records, calls)
        self.assertEqual([s.split()[-1] for s in said], ['6', '7'])
        # Nor is what failed.
        records[1]['failed'] = 'x'
        left, said = self.run_parts(60, records[1:], calls[:1])
        self.assertEqual([s.split()[-1] for s in said], ['5'])

    def test_no_time(self):
        """What was cut off is made again, and the line that was torn is not
        there."""
        calls = [experiments.Call(1, '--engine isal,gf-complete -m 2 -k 4')]
        self.assertEqual(self.run_parts(0, [], calls), (1, []))
        with open(self.path, 'a') as f:
            f.write('{"name": "x"')
        records = campaign.read([self.path])
        self.assertEqual([r['partial'] for r in records], [True])
        left, said = self.run_parts(60, records, calls)
        self.assertEqual((left, len(said)), (0, 1))
        records = campaign.read([self.path])
        self.assertEqual(len(records), 2)
        for order in records, records[::-1]:
            best, = campaign.best_records(order)
            self.assertFalse(best['partial'])

    def test_failures(self):
        """One that can't be made does not stop the others; two devices are
        not there."""
        calls = [experiments.Call(1, '--engine isal -m 2 -k 300'),
                 experiments.Call(1, '--engine {seeds} -m 2 -k 4', 2),
                 experiments.Call(1, '--engine cuda --gpus all', devices=2),
                 experiments.Call(1, '--engine isal -m 2 -k 4')]
        calls[0].args = '--engine isal --code crs -w 3 -m 2 -k 40'
        with mock.patch.object(campaign, 'Server', wraps=Server) as made:
            _, said = self.run_parts(60, [], calls)
        # A new process after the first.
        self.assertEqual(made.call_count, 2)
        for text, words in zip(said, ('nothing could be measured',
                                      'no variant', 'for 2 CUDA devices',
                                      'x: 1 rows')):
            self.assertIn(words, text)

    def test_deadline(self):
        server = Server(PROGRAM, deadline=time.monotonic() - 1)
        with self.assertRaises(Late):
            server.ask('machine')
        server.end()


class Sustained(unittest.TestCase):
    def test_last(self):
        self.assertEqual(sustain.last([1] * 10, 0.4), 4)
        self.assertEqual(sustain.last([9, 1], 0.4), 2)
        self.assertEqual(sustain.last([5], 0.4), 1)

    def test_row(self):
        """The rate of the end, and the device's figures."""
        class Fake:
            kept, mask, broken = {}, 1, False

            def ask(self, do, **q):
                assert q['for'] == 5 and q['times'] == 3
                return {'seconds': [1.0] * 6 + [2.0] * 2, 'cpu': 0, 'note': ''}

        class Meter(sustain.Quiet):
            def since(self, start):
                return [1740, 698.5]

        bench = mock.Mock()
        bench.machine.engines = {'g': {'uses_threads': False, 'gpu': True,
                                       'in_memory': False, 'code': ''}}
        bench.machine.meter = Meter
        bench.machine.ceiling.return_value = 1e10
        bench.server = Fake()
        run = {'id': 1, 'rows': 2, 'cell': 10**9, 'rects': 1, 'w': 8}
        e = rows.Entry(bench, {'engine': 'g', 'code': 'rs', 'k': 4, 'm': 2,
                               'cell': 1, 'rects': 1, 'slices': 0}, run, 'raw')
        e.seconds, e.times = [1.0], 3
        e.sustain(5)
        e.end(options.parse(['--raw']))
        self.assertEqual(
            {k: v for k, v in e.row.items() if k in (
                'gb_per_s', 'sustained_gb_per_s', 'sustained_share',
                'clock_mhz', 'power_w')},
            {'gb_per_s': 4.0, 'sustained_gb_per_s': 2.0,
             'sustained_share': 0.2, 'clock_mhz': 1740, 'power_w': 698.5})

    def nvml(self, bus):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'nvml.so')
            subprocess.run(['cc', '-w', '-shared', '-fPIC', '-x', 'c', '-',
                            '-o', path], input=NVML, text=True, check=True)
            with mock.patch.object(power, 'LIBRARY', path):
                return power.Nvml(bus)

    def test_nvml(self):
        """The device is found by its bus, and sampled by a thread."""
        nvml = self.nvml(17)
        self.assertEqual((nvml.driver(), nvml.limit()), ('580.1', 700))
        start = time.monotonic()
        with mock.patch.object(power, 'PERIOD', 0.01), \
                power.Meter(nvml) as meter:
            while len(meter.samples) < 2 and meter.thread.is_alive():
                time.sleep(0.01)
        self.assertEqual(meter.since(start), [1702, 690.5])
        self.assertIsNone(meter.since(time.monotonic()))

    def test_absent(self):
        with self.assertRaisesRegex(power.Absent, 'no device on bus 7'):
            self.nvml(7)
        with self.assertRaisesRegex(power.Absent, 'PowerUsage: NVML error'):
            self.nvml(18).power()
        with mock.patch.object(power, 'LIBRARY', 'libnosuch.so.9'):
            with self.assertRaisesRegex(power.Absent, 'no NVML: libnosuch'):
                power.Nvml(7)


class Texts(unittest.TestCase):
    def lines(self, name, rows_):
        table, = [t for t in tables.TABLES if t.name == name]
        return table.text(rows_)

    def test_raw(self):
        text = self.lines('raw', [row(
            'kernel:special', 2990.1, share=.979, sustained_gb_per_s=2872,
            sustained_share=.946, clock_mhz=1776, power_w=698.7)])
        self.assertEqual(text[-1], '| 10+4 | encode | 2990 | 97.9 % | 2872 | '
                                   '94.6 % | 1776 | 699 |')
        self.assertEqual(len({line.count('|') for line in text}), 1)

    def test_crossover(self):
        text = self.lines('crossover', [
            {'k': k, 'm': m, 'rects': n, 'cpu_us': 10.2, 'cuda_us': 20,
             'auto_us': 11, 'cpu_again_us': 10.1, 'cuda_again_us': 20}
            for k, m, n in ((4, 2, 1), (10, 4, 1), (4, 2, 2))])
        self.assertEqual(text[2:], [
            '| 1 | 10 / 20 / 11 (1.08, 0.99) | 10 / 20 / 11 (1.08, 0.99) |  |'
            '  |', '| 2 | 10 / 20 / 11 (1.08, 0.99) |  |  |  |'])

    def test_founding(self):
        text = self.lines('founding', [row('gcrs:no-branchless', 1452),
                                       row('kernel', 2904)])
        self.assertEqual([t.split(' | ')[1:4] for t in text[2:]], [
            ['ours', '', '2904'], ['gcrs', 'no-branchless', '1452']])
        self.assertTrue(text[3].endswith('| 2.00 |'))

    def test_every_table(self):
        """A row has as many cells as there are heads."""
        every = dict(row('kernel', 1.5), w=8, threads=2, rects=1, cpu_us=1,
                     cuda_us=2, auto_us=3, cpu_again_us=1, cuda_again_us=2)
        for t in tables.TABLES:
            text = t.text([dict(every), dict(every)])
            self.assertEqual(len({line.count('|') for line in text}), 1,
                             t.name)

    def test_replace(self):
        text = 'a\n<!-- table raw -->\nold\n<!-- end of raw -->\nb\n'
        self.assertEqual(tables.replace(text, 'raw', ['new \\1']), (
            'a\n<!-- table raw -->\nnew \\1\n<!-- end of raw -->\nb\n', True))
        self.assertEqual(tables.replace(text, 'host', ['new']), (text, False))

    def test_beside(self):
        """Where ours is not faster, the page says so."""
        found = variants.beside([
            row('kernel', 2904), row('gcrs:no-branchless', 1452),
            row('kernel', 100, m=2), row('gcrs', 98, m=2),
            row('gcrs:x', 99, m=2, slices=4), row('gcrs:y', 97, m=2)])
        text = '\n'.join(papers.beside_seeds(found))
        self.assertIn('| 10+2 | encode | 100 |  |  |  |  | 99 x 4 slices |',
                      text)
        self.assertIn('Ours is 1.01 to 2.00 times', text)
        self.assertIn('- gcrs:x, 10+2 encode: 99 GB/s, ours 100', text)
        text = '\n'.join(papers.beside_seeds(found[:2]))
        self.assertIn('None is as fast', text)

    def test_files(self):
        """From records of a device, by the command."""
        record = {'name': 'A1', 'args': 'x', 'made': '--raw', 'seconds': 1,
                  'partial': False, 'at': '2026-11-23 10:00',
                  'top': {'device': 'NVIDIA H200', 'version': '1',
                          'rows': [row('kernel', 2), row('gcrs', 1)]}}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'r.jsonl')
            with open(path, 'w') as f:
                print(json.dumps(record), file=f)
            subprocess.run([sys.executable, os.path.join(
                TOP, 'bench/scripts/bench-gpu'), '--write', path, '--papers',
                os.path.join(folder, 'p')], check=True,
                stdout=subprocess.DEVNULL)
            with open(os.path.join(folder, 'p/h200/A1.md')) as f:
                self.assertIn('| 10+4 | encode | 2 |', f.read())
            with open(os.path.join(folder, 'p/h200/README.md')) as f:
                self.assertRegex(f.read(), r'\| 2 \| 1 \| 0 of \d+ \|')


if __name__ == '__main__':
    unittest.main()
