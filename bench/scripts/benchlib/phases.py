# phases.py: where the time of a small job on a device goes.
#
# SPDX-License-Identifier: BSD-3-Clause

from benchlib import cases, options
from benchlib.rows import VERIFY_LEN, digits, median
from benchlib.server import Failed
from benchlib.table import cells, head, size

NR_JOBS = 1000                  # of a sample
PAUSE_US = 1000                 # the device's thread sleeps by then

# How the thread that submits waits.
WAYS = {
    'spin': {'wait': 'spin'},
    'sleep': {'wait': 'sleep'},
    # The launching thread itself looks at the event, and at nothing else.
    'look': {'wait': 'look'},
    'pause': {'wait': 'sleep', 'pause': PAUSE_US, 'nr': NR_JOBS // 10},
}

PHASES = ('prepare', 'launch', 'record', 'rest', 'event', 'first', 'looks',
          'query', 'late', 'end', 'wake', 'total', 'total_p90')
COLUMNS = (('engine', '<12', 'engine'), ('k', '3', 'k'), ('m', '3', 'm'),
           ('size', '>5', 'cell'), ('jobs', '4', 'jobs'),
           ('way', '<5', 'way')) + tuple(
               (name, f'{max(len(name), 6)}.{0 if name == "looks" else 2}f',
                name) for name in PHASES)


def measure(bench, request):
    """A row for each way, which take turns."""
    need = bench.server.need
    rects = request['rects']
    run = need('open', **dict(request, slices=rects, trace=1))
    about = {'id': run['id']}
    about['metric'] = 'overall'
    answer = need('check', bytes=VERIFY_LEN, **about)
    if 'wrong' in answer:
        raise Failed(f'{request["engine"]} is wrong: {answer["wrong"]}')
    # The kernel that the first jobs asked for is ready after that.
    need('sample', nr=2, **about)
    samples = {way: [] for way in WAYS}
    for _ in range(bench.opts.samples):
        for way, how in WAYS.items():
            # With more than one job the launches would take turns.
            if way != 'look' or rects == 1:
                samples[way].append(need('phases', **about,
                                         **{'nr': NR_JOBS, **how}))
    need('close', **about)
    for way, found in samples.items():
        if found:
            yield {'engine': request['engine'], 'k': request['k'],
                   'm': request['m'], 'cell': run['cell'], 'jobs': rects,
                   'way': way, **{name: digits(median([s[name] for s in found]))
                                  for name in PHASES}}


def run(bench, report):
    opts = bench.opts
    report.line(head(COLUMNS))
    report.top['phases'] = rows = []
    for k, m in options.shapes(opts):
        for name in cases.engines(bench.server, bench.machine, opts):
            for cell in opts.cell:
                for jobs in opts.batch:
                    for row in measure(bench, {
                            'engine': name, 'code': opts.code, 'k': k, 'm': m,
                            'cell': cell, 'rects': jobs or 1,
                            'seed': opts.seed, **opts.w[0]}):
                        rows.append(row)
                        report.line(cells(COLUMNS,
                                          dict(row, size=size(row['cell']))))
    if not rows:
        raise Failed('nothing to measure')
