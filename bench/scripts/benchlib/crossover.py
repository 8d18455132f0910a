# crossover.py: from which size of batch a GPU is faster.
#
# SPDX-License-Identifier: BSD-3-Clause

from benchlib import options
from benchlib.rows import digits, median
from benchlib.server import Failed
from benchlib.table import cells, head

SIZES = [1 << n for n in range(9)]

# A turn of each side begins with this many batches that don't count, while
# processors and device wake up.
TURN_COLD = 8

# Each one alone is measured twice, with cells of its own each time: the
# difference between the two shows how much a difference means.
SIDES = ('cpu', 'cuda', 'auto', 'cpu_again', 'cuda_again')

COLUMNS = (('k', '3', 'k'), ('m', '3', 'm'), ('rects', '6', 'rects'),
           ('kib', '9.0f', 'data KiB'), ('cpu_us', '10.1f', 'cpu us'),
           ('cuda_us', '10.1f', 'cuda us'), ('auto_us', '10.1f', 'auto us'),
           ('auto', '6.2f', 'auto'), ('again', '6.2f', 'again'))


def engine_of(bench, side):
    name = side.split('_')[0]
    return bench.machine.about['default'] if name == 'cpu' else name


def open_side(bench, side, k, m, rects):
    """What "sample" is to be asked, warm."""
    opts, engine = bench.opts, engine_of(bench, side)
    try:
        run = bench.server.need(
            'open', engine=engine, code=opts.code, k=k, m=m,
            cell=opts.cell[0], rects=rects, memory=opts.memory,
            threads=opts.threads[0], slices=1, seed=opts.seed, **opts.w[0])
        what = {'id': run['id'], 'metric': run['metrics'][0]}
        bench.server.need('sample', nr=2, **what)
    except Failed as e:
        raise Failed(f'--crossover: {engine}: {e}')
    return what


def take_turn(bench, what):
    """Batches one after the other: the mean of their seconds."""
    bench.server.need('sample', nr=TURN_COLD, **what)
    seconds = bench.server.need('sample', **what,
                                **{'for': bench.opts.seconds})['seconds']
    return sum(seconds) / len(seconds)


def measure(bench, k, m, rects):
    """Seconds of a single batch, on all sides: the median of the turns."""
    runs = {side: open_side(bench, side, k, m, rects) for side in SIDES}
    turns = {side: [] for side in SIDES}
    nr = len(SIDES)
    for turn in range(bench.opts.samples):
        for i in range(nr):
            # Each round begins with another side, and every second round goes
            # backwards, so that no side always follows the same one.
            side = SIDES[(turn + (nr - i if turn % 2 else i)) % nr]
            turns[side].append(take_turn(bench, runs[side]))
    for what in runs.values():
        bench.server.need('close', id=what['id'])
    return {side: median(turns[side]) for side in SIDES}


def one_batch(bench, report, k, m, rects):
    """The row, and the ratios of auto and of the better one, measured again,
    to the better one of CPU and cuda."""
    seconds = measure(bench, k, m, rects)
    better = min(('cpu', 'cuda'), key=seconds.get)
    ratios = {'auto': seconds['auto'] / seconds[better],
              'again': seconds[better + '_again'] / seconds[better]}
    row = {'k': k, 'm': m, 'rects': rects}
    row.update((side + '_us', digits(s * 1e6)) for side, s in seconds.items())
    report.line(cells(COLUMNS, dict(
        row, kib=rects * k * bench.opts.cell[0] / 1024, **ratios)))
    return row, ratios


def one_shape(bench, report, k, m, rows, ratios):
    """Adds to the rows and ratios; the smallest batch from which on the GPU
    alone is faster goes to the report."""
    first = 0
    for rects in SIZES:
        if (k + m) * rects * bench.opts.cell[0] > bench.opts.memory:
            break
        row, ratio = one_batch(bench, report, k, m, rects)
        rows.append(row)
        ratios.append(ratio)
        if row['cuda_us'] >= row['cpu_us']:
            first = 0
        else:
            first = first or rects
    report.add(f'crossover_{k}+{m}', f'cuda is faster from {first} rects on'
               if first else 'the CPU is faster')


def summary(ratios):
    """How many are more than a few percent slower."""
    over = [sum(r > limit for r in ratios) for limit in (1.05, 1.08)]
    return (f'median {median(ratios):.2f}, worst {max(ratios):.2f}; '
            f'{over[0]} of {len(ratios)} over 1.05, {over[1]} over 1.08')


def run(bench, report):
    rows, ratios = [], []
    report.add('crossover_cpu', f'{engine_of(bench, "cpu")} on '
               f'{bench.opts.threads[0]} processors')
    report.top['crossover'] = rows
    report.line(head(COLUMNS))
    for k, m in options.shapes(bench.opts):
        one_shape(bench, report, k, m, rows, ratios)
    if not ratios:
        raise Failed('--crossover: --memory is too small for a batch')
    for key in 'auto', 'again':
        report.add(f'crossover_{key}', summary([r[key] for r in ratios]))
