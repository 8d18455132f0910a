#!/usr/bin/python3
# test-benchlib: what bench decides: which cases there are, what is
# measured when, what becomes of failures, G-CRS's model, tunings, phases
#
# A recorder takes the side of gpuraid-bench, except where its kernels are
# needed: they run on the emulated device.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer
# run-tests: inputs=bench,cli,common,gf,gpu,measure,Makefile,scripts,tests/fake-cuda

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), '../..'))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, 'bench/scripts'))

from benchlib import cases, model, options, phases, rows, tunings  # noqa: E402
from benchlib.server import Failed, Machine, Server  # noqa: E402

PROGRAM = os.path.join(os.environ.get('OUT', TOP), 'gpuraid-bench')


def engine(name, code='', gpu=False):
    return {'name': name, 'options': 'plain crc', 'code': code, 'gpu': gpu,
            'uses_threads': not gpu, 'in_memory': not gpu}


class Recorder:
    """Answers as gpuraid-bench does: letters of engines in calls, for each
    sample, and repeated ones once."""

    def __init__(self):
        self.calls, self.nr, self.open, self.fails = '', 0, {}, {}
        self.kept, self.mask = {}, 1

    def ask(self, do, **q):
        return {'machine': self.machine, 'memcpy': self.memcpy,
                'ceilings': self.ceilings, 'open': self.open_run,
                'sample': self.sample}.get(do, lambda **q: {})(**q)

    need = Server.need

    def machine(self, **q):
        return {'default': 'a', 'engines': [
            engine('a'), engine('b'), engine('x'), engine('own', 'crs'),
            engine('g', gpu=True)]}

    def memcpy(self, **q):
        return {'copy': 1e9}

    def ceilings(self, **q):
        return {'copy': 1e12, 'h2d': 1e10, 'd2h': 1e10, 'both': 1.5e10}

    def open_run(self, **q):
        if q['engine'] == 'own':
            return {'failed': 'as asked'}
        run = len(self.open)
        self.open[run] = q['engine']
        return {'id': run, 'code': 'rs', 'w': 8, 'rows': 2, 'cell': 4096,
                'rects': 2, 'metrics': ['raw']}

    def sample(self, id, nr=1, times=1, **q):
        name = self.open[id]
        if self.fails.get(name) == 0:
            return {'failed': 'broken'}
        self.fails[name] = self.fails.get(name, 0) - 1
        if not self.calls.endswith(name):
            self.calls += name
        self.nr += nr
        return {'seconds': [0.01 * (n + 1) for n in range(nr)], 'cpu': 0.03,
                'note': ''}


def bench(*argv, fails=()):
    server = Recorder()
    server.fails = dict(fails)
    opts = options.parse(['--pairs', '4+2', '--cell', '4K', '--samples', '3',
                          '--threads', '1', *argv])
    return rows.Bench(opts, server, Machine(server, 1 << 20, 1))


class Lists(unittest.TestCase):
    def test_values(self):
        self.assertEqual(options.values('4', 1, 9), [4])
        self.assertEqual(options.values('2-5,9', 1, 9), [2, 3, 4, 5, 9])
        self.assertEqual(options.values('2-9:3', 1, 9), [2, 5, 8])
        self.assertEqual(options.values('m-6,m', 1, 9, 4), [4, 5, 6, 4])
        self.assertEqual(options.values('2-m', 1, 9, 4), [2, 3, 4])
        for text in '', 'm', 'x', '1,', '1-', '-1', '1-3:0', '1 2', '0', '10':
            with self.assertRaises(options.argparse.ArgumentTypeError,
                                   msg=text):
                options.values(text, 1, 9)

    def test_shapes(self):
        opts = options.parse(['-k', 'm-4', '-m', '2,3'])
        self.assertEqual(options.shapes(opts),
                         [(2, 2), (3, 2), (4, 2), (3, 3), (4, 3)])

    def test_losses(self):
        opts = options.parse(['--encode', '--decode', '1,m,data,0',
                              '--lost', '0,3'])
        self.assertEqual(opts.losses, [
            {}, {'lose': 'random', 'nr_lost': 1}, {'lose': 'random'},
            {'lose': 'data'}, {}, {'lost': [0, 3]}])


def commands():
    """Those in the documents, without the words behind them."""
    for path in sorted(pathlib.Path(TOP, 'docs').glob('**/*.md')):
        text = path.read_text()
        for found in re.findall(r'`bench/scripts/bench (-(?!-help)[^`]*)`|'
                                r'^    bench/scripts/bench (-(?!-help).*)$',
                                text, re.M):
            yield path.name, ' '.join(found).split()


class Documents(unittest.TestCase):
    def test_commands(self):
        """All are still taken, with every engine."""
        server = Server(PROGRAM)
        machine = Machine(server, 1 << 20, 1)
        nr = 0
        for name, argv in commands():
            with self.subTest(name, argv=argv):
                opts = options.parse(argv)
                self.assertTrue(cases.engines(server, machine, opts))
                self.assertTrue(options.shapes(opts))
                nr += 1
        self.assertGreater(nr, 50)
        server.end()


class Turns(unittest.TestCase):
    def run_rows(self, b, *names):
        return list(b.rows(list(names)))

    def test_in_turn(self):
        """Made ready one after the other, and then three turns."""
        b = bench('--in-turn')
        found = self.run_rows(b, 'a', 'b')
        self.assertEqual(b.server.calls, 'abababab')
        self.assertEqual([r['engine'] for r in found], ['a', 'b'])
        # The cold one of each turn does not count.
        self.assertEqual(found[0]['seconds'], 0.01)

    def test_one_after_the_other(self):
        b = bench()
        found = self.run_rows(b, 'a', 'b')
        self.assertEqual(b.server.calls, 'ab')
        # The median of 10, 20 and 30 ms, and the arithmetic.
        self.assertEqual(found[0]['seconds'], 0.02)
        data = 4 * 4096 * 2
        self.assertAlmostEqual(found[0]['gb_per_s'], data / 0.02 / 1e9)
        self.assertAlmostEqual(found[0]['all_gb_per_s'],
                               data / 0.02 / 1e9 * 6 / 4, 9)
        self.assertAlmostEqual(found[0]['ceiling_gb_per_s'], 4 / 6, 5)
        self.assertAlmostEqual(found[0]['spread'], 1)
        # The second run took 20 ms, so a sample of 50 ms is 3 of them; 30 ms of
        # all processors for 3 samples.
        self.assertAlmostEqual(found[0]['cpu_s_per_gb'] * data / 1e9,
                               0.03 / 3 / 3, 6)

    def test_latencies(self):
        """Some of a turn's first ones are not counted."""
        b = bench('--in-turn', '--latency')
        found = self.run_rows(b, 'a', 'b')
        self.assertEqual(len(b.server.calls), 2 + 2 * 20)
        self.assertEqual(b.server.nr, 2 * (2 + 100 + 20 * (8 + 50)))
        self.assertLessEqual(found[1]['p50_us'], found[1]['p99_us'])
        self.assertLess(found[1]['min_us'], found[1]['max_us'])

    def test_alike(self):
        """Only what differs in the engine alone."""
        b = bench('--in-turn', '--decode', '0,m', '--threads', '1,2')
        found = self.run_rows(b, 'a', 'b')
        self.assertEqual(
            [(r['engine'], r['op'], r['threads']) for r in found],
            [(e, op, threads) for threads in (1, 2)
             for op in ('encode', 'decode 2') for e in 'ab'])
        self.assertEqual(len(b.server.calls), 4 * 8)

    def test_devices_join(self):
        """Threads make no difference to a device: it is measured once."""
        b = bench('--in-turn', '--threads', '1,2')
        found = self.run_rows(b, 'a', 'g')
        self.assertEqual([(r['engine'], r['threads']) for r in found],
                         [('a', 1), ('g', 0), ('a', 2)])
        self.assertAlmostEqual(found[1]['ceiling_gb_per_s'], 1e3 * 4 / 6, 2)

    def test_ceilings(self):
        """The slowest of all in, all out, all together."""
        machine = bench().machine
        for k, rows_, per in ((4, 2, 6 / 1.5), (4, 1, 4), (2, 4, 4)):
            self.assertAlmostEqual(
                machine.ceiling(engine('g', gpu=True) | {'in_memory': False},
                                'overall', 1, k, rows_), k / per * 1e10)

    def test_failures(self):
        """The others go on, and its row says why."""
        b = bench('--in-turn', fails={'x': 2})
        found = self.run_rows(b, 'own', 'x', 'b')
        self.assertEqual([r.get('skipped') for r in found],
                         ['as asked', 'broken', None])
        self.assertEqual(b.server.calls, 'xbxb')
        self.assertGreater(found[2]['seconds'], 0)

    def test_verify_only(self):
        b = bench('--verify-only')
        found = self.run_rows(b, 'a', 'b')
        self.assertEqual(b.server.calls, '')
        self.assertNotIn('seconds', found[0])

    def test_groups(self):
        b = bench('--engine', 'seeds')
        self.assertEqual(cases.engines(b.server, b.machine, b.opts), ['own'])
        b = bench('--engine', 'gpu,a', '--crc')
        self.assertEqual(cases.engines(b.server, b.machine, b.opts),
                         ['g:crc', 'a:crc'])


class Model(unittest.TestCase):
    """The paper's own numbers: GTX 980, 16 SMs, 1126 MHz, a bus of 256 bits,
    T_DRAM 3.516, T_SM 1.506."""
    gtx_980 = model.Model(1126e6, 16, 2048 / 256 * 3.516, 1.506)

    def test_rho(self):
        # Printed as 0.06, read off a chart.
        self.assertAlmostEqual(self.gtx_980.rho(), 0.0535, delta=0.001)

    def test_rates(self):
        """k 10, w 8: the memory's at m 1, two thirds of that at m 4."""
        for k, m, rate in (10, 1, 149), (10, 4, 96), (40, 8, 48):
            self.assertAlmostEqual(self.gtx_980.rate(k, m, 8) / 1e9, rate,
                                   delta=0.5)

    def test_branches_meet(self):
        """At r = rho both say the same: no jump between neighbours."""
        found = []
        for factor in 1 + 1e-9, 1 - 1e-9:
            near = model.Model(1126e6, 16, self.gtx_980.t_access)
            near.t_sm = near.t_access * near.r(10, 2, 8) * factor
            found.append(near.rate(10, 2, 8))
        self.assertAlmostEqual(found[0] / found[1], 1, 6)

    def test_fit(self):
        """Its 164 GB/s of traffic give the cost of an access again."""
        self.assertAlmostEqual(self.gtx_980.fit_access(163.97e9),
                               self.gtx_980.t_access, delta=0.01)
        self.assertAlmostEqual(
            self.gtx_980.fit_sm(4, 8, self.gtx_980.rate(10, 4, 8)), 1.506)


class Tunings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        fake = os.path.join(TOP, 'build/tests/fake-cuda')
        os.environ['LD_LIBRARY_PATH'] = \
            f'{fake}:{os.environ.get("LD_LIBRARY_PATH", "")}'
        cls.server = Server(PROGRAM)
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.server.end()
        cls.folder.cleanup()

    def open(self, k, m, code='rs', w=0):
        run = self.server.need('open', engine='kernel-any', code=code, k=k,
                               m=m, w=w, cell=4096, rects=3)
        self.addCleanup(self.server.need, 'close', id=run['id'])
        return run

    def test_text(self):
        for text in '8x128', '8x128-min4-signed-g3-even-mul2', '16x64-odd':
            self.assertEqual(tunings.text(*tunings.parts(text)), text)

    def test_grids(self):
        """All are different and possible, and few enough for some minutes of a
        device."""
        for k, m, code, w in (
                (1, 1, 'rs', 0), (4, 2, 'rs', 0), (10, 4, 'rs', 0),
                (20, 8, 'rs', 0), (32, 8, 'rs', 0), (48, 16, 'rs', 0),
                (4, 2, 'crs', 4), (20, 8, 'crs', 8)):
            run = self.open(k, m, code, w)
            base = self.server.need('tunes', id=run['id'])['tuning']
            packets = code == 'crs'
            grid = tunings.frames(base, run['rows'], run['w'], packets)
            more = tunings.sums(grid[len(grid) // 2], packets)
            for step in grid, more:
                self.assertEqual(len(set(step)), len(step))
                for tuning in step:
                    self.server.need('source', id=run['id'], tuning=tuning)
            if not packets:
                self.assertTrue(40 <= len(grid) + len(more) <= 80)

    def compile(self, run, tuning):
        source = self.server.need('source', id=run['id'], tuning=tuning)
        path = os.path.join(self.folder.name, tuning)
        with open(path, 'wb') as out:
            subprocess.run([PROGRAM, '--compile', '90'], stdout=out,
                           input=source['source'].encode(), check=True)
        return path

    def try_code(self, run, tuning, path):
        """None, or what is wrong."""
        self.server.need('use', id=run['id'], tuning=tuning, file=path)
        return self.server.ask('check', id=run['id'],
                               metric='raw').get('wrong')

    def test_right_and_wrong(self):
        """Code that leaves out half of each cell does not pass by the output of
        the one before it."""
        run = self.open(4, 2)
        right = self.compile(run, '8x64-g2')
        self.assertIsNone(self.try_code(run, '8x64-g2', right))
        self.assertIn('is 5a', self.try_code(run, '16x64', right))
        self.assertIsNone(self.try_code(run, '8x64-g2', right))
        self.assertIsNone(self.try_code(
            run, '16x64', self.compile(run, '16x64')))

    def test_refused(self):
        run = self.open(4, 2, 'crs', 4)
        for do, q, why in (
                ('source', {'tuning': '8x64-g2'}, 'packets'),
                ('source', {'tuning': '8x65'}, 'does not begin as 8x128'),
                ('use', {'tuning': '8x64', 'file': '/nosuch'},
                 'no machine code'),
                ('sample', {'metric': 'overall'}, 'has no overall'),
                ('nosuch', {}, 'no such request')):
            with self.assertRaisesRegex(Failed, why):
                self.server.need(do, id=run['id'], **q)
        for q in {'id': 77}, {}:
            with self.assertRaisesRegex(Failed, 'no case with this id'):
                self.server.need('check', **q)
        for q, why in (({}, 'k and m are needed'),
                       ({'k': 4, 'm': 2, 'lost': [3, 1]}, 'ascending'),
                       ({'k': 4, 'm': 2, 'lost': []}, 'ascending'),
                       ({'k': 4, 'm': 2, 'lost': [6]}, 'has no cell 6'),
                       ({'k': 250, 'm': 250}, 'too big')):
            with self.assertRaisesRegex(Failed, why):
                self.server.need('open', engine='isal', **q)

class Phases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        fake = os.path.join(TOP, 'build/tests/fake-cuda')
        os.environ['LD_LIBRARY_PATH'] = \
            f'{fake}:{os.environ.get("LD_LIBRARY_PATH", "")}'
        cls.server = Server(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        cls.server.end()

    def open(self, **q):
        run = self.server.need('open', **{
            'engine': 'cuda', 'k': 4, 'm': 2, 'cell': 4096, 'rects': 1,
            'slices': 1, 'trace': 1, **q})
        self.addCleanup(self.server.need, 'close', id=run['id'])
        return run['id']

    def test_sums(self):
        """The phases of one job follow each other."""
        for n in 1, 3:
            run = self.open(rects=n, slices=n)
            for wait in 'spin', 'sleep', 'look':
                p = self.server.need('phases', id=run, nr=1, wait=wait)
                with self.subTest(jobs=n, wait=wait, phases=p):
                    self.assertAlmostEqual(
                        p['prepare'] + p['event'] + p['end'], p['total'], 2)
                    self.assertTrue(0 < p['launch'] < p['event'])
                    self.assertTrue(0 < p['query'] <= p['late'])
                    self.assertGreaterEqual(p['looks'], 1)
                    if wait == 'look':
                        # Submit takes as long as the job.
                        self.assertGreater(p['rest'],
                                           p['event'] - p['launch'] -
                                           p['record'])
            self.assertEqual(self.server.ask('check', id=run,
                                             metric='overall'), {})

    def test_table(self):
        b = bench('--phases', '--batch', '1,2', '--samples', '2')
        b.server = self.server
        b.machine = Machine(self.server, 1 << 20, 1)
        self.addCleanup(setattr, phases, 'NR_JOBS', phases.NR_JOBS)
        phases.NR_JOBS = 20
        found = [r for n in (1, 2) for r in phases.measure(
            b, {'engine': 'cuda', 'k': 4, 'm': 2, 'cell': 4096, 'rects': n})]
        self.assertEqual([(r['jobs'], r['way']) for r in found],
                         [(1, 'spin'), (1, 'sleep'), (1, 'look'),
                          (1, 'pause'), (2, 'spin'), (2, 'sleep'),
                          (2, 'pause')])
        for r in found:
            self.assertLessEqual(r['event'], r['total_p90'], r)

    def test_refused(self):
        for q, why in (({'trace': 0}, 'not one launch'),
                       ({'cell': 3 << 20}, 'not one launch'),
                       ({'engine': 'isal'}, 'only for engine cuda'),
                       ({'rects': 9, 'slices': 9}, 'more than 8')):
            run = self.open(**q)
            with self.assertRaisesRegex(Failed, why):
                self.server.need('phases', id=run, nr=10)


if __name__ == '__main__':
    unittest.main()
