# options.py: the command line of bench/scripts/bench.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import os
import re

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../..')
KiB, MiB, GiB = 1 << 10, 1 << 20, 1 << 30
MOST = 255                      # of k and of m


def bad(text, what):
    return argparse.ArgumentTypeError(f'{text}: {what}')


def values(text, least, most, m=None):
    """The numbers of "4", "2,4,8", "2-45", "2-45:5", where m stands for one
    of them."""
    found = []
    for item in text.split(','):
        if m is not None:
            item = re.sub(r'^m(?=-|$)|(?<=-)m$', str(m), item)
        match = re.fullmatch(r'(\d+)(?:-(\d+)(?::([1-9]\d*))?)?', item)
        if match is None:
            raise bad(text, 'not a list of numbers')
        first = int(match[1])
        last = int(match[2] or first)
        if first < least or last > most:
            raise bad(text, f'not from {least} to {most}')
        found += range(first, last + 1, int(match[3] or 1))
    return found


def numbers(least, most):
    return lambda text: values(text, least, most)


def some_k(text):
    """Checked now, and once more for each m."""
    values(text, 1, MOST, 1)
    return text


def number(least, most):
    def parse(text):
        found = values(text, least, most)
        if len(found) != 1:
            raise bad(text, 'not one number')
        return found[0]
    return parse


def pairs(text):
    found = []
    for item in text.split(','):
        match = re.fullmatch(r'(\d+)\+(\d+)', item)
        if match is None or not all(1 <= int(n) <= MOST
                                    for n in match.groups()):
            raise bad(text, 'not a list like 4+2,10+4')
        found.append((int(match[1]), int(match[2])))
    return found


def size(text):
    match = re.fullmatch(r'(\d+)([KMG]?)', text)
    n = int(match[1]) << {'': 0, 'K': 10, 'M': 20, 'G': 30}[match[2]] \
        if match else 0
    if not 1 <= n <= 1024 * GiB:
        raise bad(text, 'not a size')
    return n


def sizes(text):
    return [size(item) for item in text.split(',')]


def widths(text):
    """What is asked of an engine, one for each w."""
    if re.fullmatch(r'[1-8]\+', text):
        return [{'w_floor': int(text[0])}]
    return [{'w': w} for w in values(text, 1, 8)]


def threads(text):
    """"1,4,all" """
    return values(text.replace('all', str(len(os.sched_getaffinity(0)))),
                  1, 1024)


def losses(text):
    """What is asked of an engine, one for each loss."""
    found = []
    for item in text.split(','):
        if item == 'data':
            found.append({'lose': 'data'})
        elif item in ('m', 'all'):
            found.append({'lose': 'random'})
        else:
            nr = number(0, MOST)(item)
            found.append({'lose': 'random', 'nr_lost': nr} if nr else {})
    return found


def lost(text):
    cells = values(text, 0, MOST)
    if cells != sorted(set(cells)):
        raise bad(text, 'not ascending')
    return [{'lost': cells}]


def devices(text):
    """Bit n is device n."""
    if text == 'all':
        return (1 << 63) - 1
    return sum(1 << n for n in set(values(text, 0, 15)))


def seconds(text):
    try:
        if 0 <= float(text) <= 60:
            return float(text)
    except ValueError:
        pass
    raise bad(text, 'not from 0 to 60')


def plot_file(text):
    if not re.fullmatch(r'[^"\\\n]*\.(svg|png)', text):
        raise bad(text, 'not the name of an .svg or .png')
    return text


def tunings(text):
    return text.split(',')


class Parser(argparse.ArgumentParser):
    def error(self, message):
        """One line."""
        self.exit(2, f'bench: {message}\n')


WHAT = '''Measure how fast data is coded, by anything that gpuraid-bench has: the coders
of the array, their kernels alone, and rebuilds of the published systems.
docs/benchmarks.md says what is measured, and has results.  A LIST is apart by
commas; numbers may be ranges, as in 2-45, with steps, as in 5-45:5.'''


def make_parser():
    p = Parser(prog='bench', description=WHAT, allow_abbrev=False,
               formatter_class=argparse.RawDescriptionHelpFormatter)

    def flag(name, text):
        p.add_argument(name, action='store_true', help=text)

    def mode(name, text):
        p.add_argument('--' + name, dest='mode', action='store_const',
                       const=name, help=text)

    def value(name, kind, default, metavar, text):
        p.add_argument(name, type=kind, default=default, metavar=metavar,
                       help=text)

    value('-k', some_k, '10', 'LIST', 'data cells (10); m is that of -m, as '
          'in m-45')
    value('-m', numbers(1, MOST), [4], 'LIST', 'parity cells (4)')
    value('--pairs', pairs, None, 'LIST', 'instead of -k and -m: 4+2,10+4')
    p.add_argument('--code', choices=('rs', 'crs'), default='rs',
                   help='of engines that have no code of their own (rs)')
    value('-w', widths, [{}], 'LIST', 'bits of a symbol of crs; 4+: the '
          'smallest from 4 on (the smallest; of our own code 4 or 8)')
    value('--cell', sizes, [64 * KiB], 'LIST', 'bytes of a cell, as in '
          '64K,1M (64K); an engine takes the next smaller it supports')
    value('--batch', numbers(1, 1 << 24), [0], 'LIST', 'rects coded at once '
          '(as many as --memory holds)')
    value('--memory', size, None, 'SIZE', 'of all cells, and of the buffers '
          'for ceilings (512M, 4M to verify)')
    value('--threads', threads, threads('all'), 'LIST', 'of the processor: '
          '1,4,all (all)')
    value('--engine', str, None, 'LIST', 'NAME or NAME:OPTION; all, cpu, '
          'gpu, ours, seeds (simd, or isal where there is no GFNI)')
    value('--option', str, None, 'LIST', 'of those engines that have it; '
          'all: each in turn')
    p.add_argument('--encode', dest='losses', action='append_const',
                   const=[{}], help='make parity: the default')
    p.add_argument('--decode', dest='losses', action='append', type=losses,
                   metavar='LIST', help='make this many random cells of all, '
                   'or m; data: as many data cells as can be; 0: encode')
    p.add_argument('--lost', dest='losses', action='append', type=lost,
                   metavar='LIST', help='make these: data from 0 on, then '
                   'parity')
    flag('--raw', 'only from device memory to device memory')
    flag('--overall', 'only from host memory to host memory')
    value('--sustained', seconds, 0, 'S', 'raw: also after this many seconds of '
          'nothing else, with clock and power (0: not)')
    flag('--latency', 'of 1000 batches (of 1 rect), each alone')
    flag('--crc', 'with the CRC32C of every block of 4096 bytes')
    value('--slices', numbers(0, 4096), [0], 'LIST', "parts of a pipeline "
          "(0: the engine's choice)")
    value('--gpus', devices, 1, 'all|LIST', 'devices of cuda and auto; the '
          'others use the first (0)')
    flag('--verify-only', 'compare every byte, measure nothing')
    mode('ceilings', 'only how fast this machine can copy')
    mode('crossover', 'only from what batch on a GPU pays')
    mode('phases', 'only where the time of small jobs on a GPU goes; --batch '
         'is the number of jobs in flight (1)')
    mode('model', "only G-CRS's model, predicted and measured")
    mode('tunings', 'only how fast differently tuned kernels are, and which '
         'is used')
    value('--tuning', tunings, None, 'LIST', 'as --tunings, but of these: '
          '8x128-min4-g3,16x64')
    mode('xors', 'only count the XORs of the programs of crs')
    mode('list', 'the engines and their options')
    value('--samples', number(1, 1000), 7, 'N', 'measurements, of which the '
          'median counts (7)')
    value('--seconds', seconds, 0.05, 'S', 'how long each takes at least '
          '(0.05)')
    flag('--in-turn', 'engines take their samples in turn, with all their '
         'cells there at once')
    value('--seed', number(0, (1 << 63) - 1), 1, 'N', 'of random bytes and '
          'losses (1)')
    flag('--json', 'one object instead of a table')
    value('--plot', plot_file, None, 'FILE', 'an .svg or .png too, by gnuplot')
    flag('--verbose', 'what compilers and drivers say, too')
    value('--program', str, os.path.join(ROOT, 'gpuraid-bench'), 'FILE',
          'gpuraid-bench')
    return p


def parse(argv):
    p = make_parser()
    opts = p.parse_args(argv)
    if opts.tuning:
        opts.mode = 'tunings'
    if opts.mode == 'phases' and opts.engine is None:
        opts.engine = 'cuda'
    if opts.plot and (opts.mode or opts.verify_only):
        p.error('--plot: there is nothing to plot')
    if opts.mode == 'model' and opts.w == [{}]:
        p.error('--model: -w is needed, as in -w 8')
    if not opts.raw and not opts.overall:
        opts.raw = opts.overall = True
    if opts.sustained and (opts.in_turn or opts.latency or opts.verify_only):
        p.error('--sustained: only for rates that are not taken in turn')
    opts.losses = sum(opts.losses or [[{}]], [])
    opts.least_rects = 1
    if opts.memory is None:
        opts.memory = (4 if opts.verify_only else 512) * MiB
        opts.least_rects = 3 if opts.verify_only else 1
    # A latency is that of one stripe unless the user says otherwise.
    if opts.latency and opts.batch == [0]:
        opts.batch = [1]
    return opts


def shapes(opts):
    """All (k, m)."""
    return opts.pairs or [(k, m) for m in opts.m
                          for k in values(opts.k, 1, MOST, m)]
