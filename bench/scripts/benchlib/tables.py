# tables.py: the tables of docs/benchmarks.md, as calls of bench and
# as text.
#
# The text of a table is between two lines in the document, which are comments
# with the table's name; what is written there is only what was measured.
#
# SPDX-License-Identifier: BSD-3-Clause

import re

from benchlib.experiments import Call, some

RAW_PAIRS = '4+2,10+4,20+8,32+8,32+16,48+16'
PAIRS = '4+2,10+4,20+8,32+16'
FIVE = '--sustained 5'


class Table:
    """Its calls, and what makes rows of text from rows.

    heads: those of the columns.  line: the cells of a row.  rows: called with
    all rows; those that get a line.
    """

    def __init__(self, name, calls, heads, line, rows=None):
        self.name = name
        self.calls = calls
        self.heads = heads
        self.line = line
        self.rows = rows or (lambda rows: rows)

    def text(self, rows):
        return [f'| {" | ".join(self.heads)} |',
                '|' + '---|' * len(self.heads)] + [
            f'| {" | ".join(self.line(r))} |' for r in self.rows(rows)]


def shape(r):
    return f'{r["k"]}+{r["m"]}'


def number(r, key, digits=0):
    return f'{r[key]:.{digits}f}' if key in r else '-'


def percent(r, key='share'):
    return f'{100 * r[key]:.1f} %' if key in r else '-'


RAW_HEADS = ['GB/s', 'of the ceiling', '5 s: GB/s', 'of the ceiling', 'MHz',
             'W']


def raw_cells(r):
    return [number(r, 'gb_per_s'), percent(r),
            number(r, 'sustained_gb_per_s'), percent(r, 'sustained_share'),
            number(r, 'clock_mhz'), number(r, 'power_w')]


def raw_line(r):
    return [shape(r), r['op']] + raw_cells(r)


def host_line(r):
    return [shape(r), r['op'], r['engine'], number(r, 'gb_per_s', 1),
            percent(r), number(r, 'cpu_s_per_gb', 4), r.get('note', '')]


HOST_HEADS = ['k+m', '', 'engine', 'GB/s', 'of the ceiling', 'CPU s a GB',
              'shares']


def cores_line(r):
    nr = r['threads']
    return [shape(r), f'{r["engine"]}, {nr} core{"s" * (nr > 1)}',
            number(r, 'gb_per_s', 1), number(r, 'cpu_s_per_gb', 4)]


def packets_line(r):
    return [shape(r), str(r['w']), r['engine'], number(r, 'gb_per_s', 1),
            number(r, 'cpu_s_per_gb', 4)]


def latency_line(r):
    return [r['engine'], shape(r)] + [number(r, f'{p}_us', 1)
                                      for p in ('p50', 'p90', 'p99')]


def crossover_rows(rows):
    """A row for each size of batch, a column for each k+m."""
    return [[r for r in rows if r['rects'] == n]
            for n in sorted({r['rects'] for r in rows})]


def crossover_cell(r):
    better = min('cpu', 'cuda', key=lambda side: r[side + '_us'])
    return (f'{r["cpu_us"]:.0f} / {r["cuda_us"]:.0f} / {r["auto_us"]:.0f} '
            f'({r["auto_us"] / r[better + "_us"]:.2f}, '
            f'{r[better + "_again_us"] / r[better + "_us"]:.2f})')


def crossover_line(rows):
    cells = {shape(r): crossover_cell(r) for r in rows}
    return [str(rows[0]['rects'])] + [cells.get(p, '')
                                      for p in PAIRS.split(',')]


def pairs_of_devices(rows):
    """The same shape by one device, and by all."""
    found = {}
    for r in rows:
        if 'gb_per_s' in r:
            found.setdefault(shape(r), []).append(r['gb_per_s'])
    return [(p, rates) for p, rates in found.items() if len(rates) == 2]


def devices_line(row):
    p, (one, all_) = row
    return [p, f'{one:.1f}', f'{all_:.1f}', f'{all_ / one:.2f}']


def founding_rows(rows):
    """Ours first, then the others from the fastest on, at each k+m."""
    ours = {shape(r): r for r in rows if r['engine'] == 'kernel'}
    for r in rows:
        if shape(r) in ours:
            r['ratio'] = ours[shape(r)]['gb_per_s'] / r['gb_per_s']
    return sorted(rows, key=lambda r: (r['m'], r['k'], -r['gb_per_s']))


def founding_line(r):
    name, _, variant = r['engine'].partition(':')
    return [shape(r), 'ours' if name == 'kernel' else name, variant] + \
        raw_cells(r) + [number(r, 'ratio', 2)]


KERNEL = '--raw --cell 1M --memory 2G --samples 7 --seconds 0.05 ' + FIVE
IN_TURN = '--in-turn --seconds 0.1 --samples'

TABLES = [
    Table('raw',
          some(1, f'{KERNEL} --engine kernel:special --pairs {RAW_PAIRS} '
               '--decode 0,m'),
          ['k+m', ''] + RAW_HEADS, raw_line),
    Table('tensor',
          some(1, f'{KERNEL} --engine kernel:tensor --pairs {RAW_PAIRS} '
               '--decode 0,m'),
          ['k+m', ''] + RAW_HEADS, raw_line),
    Table('generic',
          some(7, f'{KERNEL} --engine kernel:generic --pairs {RAW_PAIRS}'),
          ['k+m', ''] + RAW_HEADS, raw_line),
    Table('sync',
          some(7, f'{KERNEL} --engine kernel:tensor-sync --pairs {RAW_PAIRS}'),
          ['k+m', ''] + RAW_HEADS, raw_line),
    Table('packets',
          some(7, f'{KERNEL} --engine kernel:special --code crs --pairs '
               '10+4,20+8'),
          ['k+m', 'w'] + RAW_HEADS,
          lambda r: [shape(r), str(r['w'])] + raw_cells(r)),
    Table('crossover',
          some(4, f'--crossover --memory 512M --pairs {PAIRS} --cell 64K '
               '--seconds 0.02 --samples 15'),
          ['rects'] + PAIRS.split(','), crossover_line, crossover_rows),
    Table('host',
          some(6, *(f'--overall --engine simd,isal,cuda,auto --pairs {p} '
                    f'--cell 64K --memory 2G --decode 0,m {IN_TURN} 9'
                    for p in PAIRS.split(','))),
          HOST_HEADS, host_line),
    Table('latency',
          some(6, '--latency --engine cuda,simd,isal,auto --pairs '
               '4+2,10+4,32+16 --cell 64K --in-turn'),
          ['engine', 'k+m', 'p50', 'p90', 'p99'], latency_line),
    Table('cache',
          some(11, '--overall --engine simd,isal,cuda,auto,simd,cuda --pairs '
               f'4+2,10+4,32+16 --cell 64K --memory 64M {IN_TURN} 21'),
          HOST_HEADS, host_line),
    Table('cores',
          some(11, f'--overall --engine simd,isal --pairs {PAIRS} --cell 64K '
               '--memory 2G --threads 1,4'),
          ['k+m', 'engine', 'GB/s', 'CPU s a GB'], cores_line),
    Table('crc',
          some(11, '--overall --engine cuda,simd,isal --crc --pairs '
               '4+2,10+4,32+16 --cell 64K --memory 2G'),
          HOST_HEADS, host_line),
    Table('crs',
          some(11, '--overall --engine cuda,simd,auto --code crs -w 4,8 '
               f'--pairs 10+4 --cell 64K --memory 2G {IN_TURN} 9'),
          ['k+m', 'w', 'engine', 'GB/s', 'CPU s a GB'], packets_line),
    Table('two',
          [Call(6, f'--overall --engine cuda --pairs 10+4,32+16 --cell 64K '
                f'--memory 1G --seconds 0.3 --gpus {gpus}', devices=2)
           for gpus in ('0', 'all')],
          ['k+m', 'one', 'all', ''], devices_line, pairs_of_devices),
    Table('founding',
          [Call(rank, f'--raw --cell 1M --memory 512M {FIVE} --engine '
                'kernel,{best},{sobe} --pairs %d+%d' % (k, m), m)
           for rank, k, m in ((7, 10, 4), (9, 10, 2), (9, 10, 8), (9, 16, 16),
                              (12, 4, 4), (12, 24, 4), (12, 45, 4))],
          ['k+m', 'system', 'variant'] + RAW_HEADS + ['ours to it'],
          founding_line, founding_rows),
]


def replace(document, name, lines):
    """The document with these lines as the text of the table."""
    begin, end = f'<!-- table {name} -->', f'<!-- end of {name} -->'
    pattern = re.compile(re.escape(begin) + '.*?' + re.escape(end), re.S)
    text = '\n'.join([begin] + lines + [end])
    return pattern.sub(lambda _: text, document), bool(
        pattern.search(document))
