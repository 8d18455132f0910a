# experiments.py: the experiments of the five papers, as calls of bench.
#
# SPDX-License-Identifier: BSD-3-Clause

from benchlib import variants

# How long everything is measured, where a call does not say it itself.
MEASURE = {'--samples': '5', '--seconds': '0.01', '--memory': '256M'}

MS = (2, 4, 8, 16)
SOME_K = (2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36, 40, 45)
FEW_K = (10, 24, 45)
AT_ONCE = 8                     # values of k in a call


def whole(args):
    """With how long it is measured."""
    words = args.split()
    return ' '.join([f'{name} {value}' for name, value in MEASURE.items()
                     if name not in words] + [args])


class Call:
    """One call.

    rank: those with a lower one are made first.
    args: may have {names} for what earlier calls decide: variants.raw and so
    on, for m.
    few: one of the calls that are made when only a few values are wanted.
    devices: that must be there.
    """

    def __init__(self, rank, args, m=None, few=True, devices=1):
        self.rank = rank
        self.args = args
        self.m = m
        self.few = few
        self.devices = devices


class Experiment:
    """Its calls, and its chart.

    x: the column of the horizontal axis.  y: that of the vertical one.
    lines: the columns that tell the lines of the chart apart.
    after: called with rows and machine; the rows that remain.
    beside: a row of the table is a k+m, with the systems beside each other.
    """

    def __init__(self, name, title, calls, x='k', y='gb_per_s',
                 lines=('engine', 'op', 'metric', 'm'), log_x=False,
                 after=None, beside=False):
        self.name = name
        self.title = title
        self.calls = calls
        self.x = x
        self.y = y
        self.lines = lines
        self.log_x = log_x
        self.after = after
        self.beside = beside


def some(rank, *args):
    return [Call(rank, a) for a in args]


def levels(m, least=2):
    """A few k, some more, and all others, up to the papers' 45."""
    few = sorted({max(m, least)} | {k for k in FEW_K if k >= m})
    more = [k for k in SOME_K if k >= max(m, least) and k not in few]
    rest = [k for k in range(max(m, least), 46) if k not in few + more]
    return few, more, rest


def every_k(ranks, args, ms=MS, least=2):
    """Calls for each m: a few k first, all others last."""
    calls = []
    for m in ms:
        for rank, ks in zip(ranks, levels(m, least)):
            for at in range(0, len(ks), AT_ONCE):
                part = ','.join(map(str, ks[at:at + AT_ONCE]))
                calls.append(Call(rank, f'{args} -m {m} -k {part}', m,
                                  rank == ranks[0]))
    return calls


# Compiling Sobe's equations takes up to half a minute for the largest, whose
# turn is the last.
SMALL = 100                     # k * m
LAST = 16


def every_sobe(ranks, args):
    calls = []
    for m in MS:
        few, more, rest = levels(m)
        for rank, ks in zip(ranks, (few, more)):
            small = [k for k in ks if k * m <= SMALL]
            if small:
                calls.append(Call(rank, f'{args} -m {m} -k '
                                  f'{",".join(map(str, small))}', m,
                                  rank == ranks[0]))
        calls += [Call(LAST, f'{args} -m {m} -k {k}', m, False)
                  for k in few + more + rest if k * m > SMALL or k in rest]
    return calls


def predict_overall(rows, machine):
    """G-CRS's T_total = T_HD + (T_K + T_DH) / x for x slices, in place of
    the kernel's rows."""
    kernel = {(r['k'], r['m'], r['slices']): r['seconds'] for r in rows
              if r['metric'] == 'raw' and 'seconds' in r}
    for r in rows:
        at = kernel.get((r['k'], r['m'], r['slices']))
        if r['engine'] != 'gcrs' or r['metric'] != 'overall' or at is None:
            continue
        copy_in = r['k'] * r['cell'] * r['rects'] / machine['h2d'] / 1e9
        copy_out = r['m'] * r['cell'] * r['rects'] / machine['d2h'] / 1e9
        r['t_total'] = copy_in + (at + copy_out) / r['slices']
    return [r for r in rows if r['metric'] != 'raw']


def beside_seeds(rows, machine):
    return variants.beside(rows)


def mark_raw(rows, machine):
    """Those that go on to A1."""
    for m in {r['m'] for r in rows}:
        names = sum(variants.raw(rows, m).values(), [])
        for r in rows:
            if r['m'] == m:
                r['chosen'] = 'yes' if r['engine'] in names else ''
    return rows


def mark_overall(rows, machine):
    """Those that go on to A2."""
    for m in {r['m'] for r in rows}:
        names = variants.overall(rows, m).values()
        for r in rows:
            if r['m'] == m:
                r['chosen'] = 'yes' if (r['engine'], r['slices']) in names \
                    else ''
    return rows


def blocks(w, exponents):
    """Cells of 2^e blocks of G-CRS: 8 w floor (128 / w) bytes each."""
    return ','.join(str((1 << e) * 8 * w * (128 // w)) for e in exponents)


BOTH_OPS = '--encode --decode m'
STAGES = ('gcrs:base,gcrs:bitmatrix,gcrs:efficient,gcrs:bandwidth,gcrs,'
          'gcrs:no-bitmatrix,gcrs:no-efficient,gcrs:no-bandwidth,'
          'gcrs:no-branchless')
TABLES = ','.join('rscode:%s%d' % (place, n)
                  for place in ('constant', 'serial', 'parallel')
                  for n in range(4))


def variants_raw():
    return [Call(10 if m == 1 else LAST if names == 'sobe_cl' and m == 16
                 else 2, '--samples 3 --seconds 0.01 --raw '
                 f'--cell 1M --engine {names} --option all -m {m} '
                 f'-k {max(10, m)}', m)
            for m in MS + (1,)
            for names in ('gibraltar,rscode,gmpe,smpe,gcrs', 'sobe_cl')]


def variants_overall():
    """Of each system the fastest on the device, with different pipelines."""
    return [Call(5, f'--overall --cell {cell} --engine {names} -m {m} '
                 f'-k {max(10, m)} --slices {slices}', m)
            for m in MS for names, cell, slices in (
                ('gibraltar', '1M', '0'), ('{rs}', '1M', '0,4,32'),
                ('{crs}', '10M', '0,4,32'), ('{sobe}', '10M', '0'))]


def beside_raw():
    base = f'--raw --cell 1M {BOTH_OPS} --engine '
    calls = every_k((3, 10, 13), base + 'kernel,{seeds}') + \
        every_k((10, 10, 13), base + 'kernel,{seeds}', (1,))
    return calls + every_sobe((3, 10), base + '{sobe}')


def beside_overall():
    """Each system with its own pipeline; those of packets need larger
    chunks."""
    calls = []
    for seed in variants.SEEDS:
        cell = '10M' if seed in variants.CRS else '1M'
        args = f'--overall --cell {cell} {BOTH_OPS} ' \
            f'--engine {{overall_{seed}}}'
        calls += every_sobe((5, 11), args) if seed == 'sobe_cl' \
            else every_k((5, 11, 14), args)
    return calls + every_k((5, 11, 14),
                           f'--overall --cell 1M,10M {BOTH_OPS} --engine cuda')


CPU = 'simd,isal,jerasure'
RAW_ALL = (f'--raw --cell 10M {BOTH_OPS} --threads all --engine '
           f'kernel,{{seeds}},{CPU}')
STEPS = ('rscode:naive,rscode:loop,rscode:byte,rscode,rscode:maxar,'
         'rscode:2gpus,cuda,' + CPU)
SOBES = ('sobe_c:direct,sobe_c:iterative,sobe_cl:direct,sobe_cl:iterative,'
         'sobe_cl:direct16,sobe_cl:iterative16')

PAPERS = [
    Experiment(
        'V1', 'Variants of each system, raw: which are compared in A1',
        variants_raw(), x='row', lines=('engine', 'm'), after=mark_raw),
    Experiment(
        'V2', 'Variants of each system, overall: which are compared in A2',
        variants_overall(), x='slices', lines=('engine', 'm'),
        after=mark_overall),
    Experiment(
        'A1', 'Ours beside the five: raw, over the range of the papers',
        beside_raw(), y='ratio', lines=('op', 'm'), after=beside_seeds,
        beside=True),
    Experiment(
        'A2', 'Ours beside the five: overall, over the range of the papers',
        beside_overall(), y='ratio', lines=('op', 'm', 'cell'),
        after=beside_seeds, beside=True),
    Experiment(
        'G1', 'G-CRS: its performance model, predicted and measured',
        [Call(8, '--model -k 2,10,28 -m 1,2,4 -w 5,8 --cell 10M'),
         Call(15, '--model -k 1-45 -m 1,2,3,4 -w 4-8 --cell 10M', few=False)],
        x='r', y='traffic_gb_per_s', lines=('m', 'w')),
    Experiment(
        'G2', 'G-CRS: workload, 2^4 to 2^13 blocks',
        [Call(8, '--engine gcrs --raw --batch 1 -k 10 -m 1,2,3,4 -w %d '
              '--cell %s' % (w, blocks(w, range(4, 14)))) for w in range(4, 9)],
        x='cell', lines=('m', 'w'), log_x=True),
    Experiment(
        'G3', 'All: raw throughput against k, encode and decode',
        every_k((9, 12, 15), RAW_ALL) + some(
            9, '--raw --engine gcrs -w 4+ --cell 10M -m 2 -k 2,4,6',
            '--raw --engine kernel --code crs --cell 10M -m 2,4,8 '
            '-k 10,24,45')),
    Experiment(
        'G4', 'G-CRS: stages, and each left out',
        some(8, *(f'--raw -k 10 -m {m} -w 4-8 --cell 10M --engine {STAGES}'
                  for m in (1, 2, 3, 4))),
        x='w', lines=('engine', 'm')),
    Experiment(
        'G5', 'G-CRS: pipelined, overall',
        every_k((9, 12, 15), '--raw --overall --engine gcrs --batch 1 '
                '--cell 10M --slices 1,2,4,8,10,16,32', (2, 4, 8)) +
        every_k((9, 12, 15), '--overall --engine cuda,auto,simd --cell 10M',
                (2, 4, 8)),
        lines=('engine', 'm', 'slices'), after=predict_overall),
    Experiment(
        'P1', 'PErasure: raw encode and decode',
        every_k((9, 12, 15), '--raw --engine gmpe,smpe --option all '
                f'--cell 10M {BOTH_OPS}', (2, 4, 8))),
    Experiment(
        'P2', 'PErasure: overall, pipelined',
        every_k((9, 12, 15), '--overall --engine gmpe,smpe --batch 1 '
                f'--cell 10M {BOTH_OPS} --slices 1,2,4,8,16', (2, 4, 8)),
        lines=('engine', 'op', 'm', 'slices')),
    Experiment(
        'P3', 'PErasure: 28 disks, 160 MB each',
        some(9, *('--overall --engine gmpe,smpe,cuda --batch 1 --cell 160M '
                  f'{BOTH_OPS} -k {28 - m} -m {m}' for m in (2, 4, 6, 8))),
        x='m', y='seconds', lines=('engine', 'op')),
    Experiment(
        'R1', 'GPU-RSCode: tables or a loop, against the size of a chunk',
        some(8, '--raw --engine rscode,rscode:loop --batch 1 -k 4,8,16 -m 2 '
             '--cell 1M,2M,4M,8M,16M,32M,64M'),
        x='cell', y='all_gb_per_s', lines=('engine', 'k'), log_x=True),
    Experiment(
        'R2', 'GPU-RSCode: variants of its tables',
        some(8, '--raw --batch 1 -k 4 -m 2 --cell 256M --engine ' + TABLES),
        x='row', y='seconds', lines=('k',)),
    Experiment(
        'R3', 'GPU-RSCode: shapes of a tile',
        some(8, *('--raw --batch 1 --engine rscode,rscode:ar1,rscode:maxar '
                  '-k %d -m %d --cell %s' % c for c in
                  ((2, 198, '1M,10M'), (4, 146, '1M,10M'), (4, 196, '1M,10M'),
                   (4, 2, '256M'), (8, 8, '128M')))),
        x='m', y='all_gb_per_s', lines=('engine', 'cell')),
    Experiment(
        'R4', 'GPU-RSCode: bytes or words',
        some(8, '--raw --batch 1 --engine rscode:byte,rscode -k 4 -m 196 '
             '--cell 10M'),
        x='row', y='all_gb_per_s', lines=('k',)),
    Experiment(
        'R5', 'GPU-RSCode: streams, with files of 1 and 2 GB',
        some(9, *(f'--raw --overall --batch 1 --engine rscode -k 4 -m 2 '
                  f'--cell {cell} --slices 1-10' for cell in
                  ('256M', '512M'))),
        x='slices', y='seconds', lines=('metric', 'cell')),
    Experiment(
        'R6', 'GPU-RSCode: step by step, and two devices',
        some(8, '--raw --overall --batch 1 -k 4 -m 2 --cell 400M --engine ' +
             STEPS),
        x='row', y='seconds', lines=('metric',)),
    Experiment(
        'S1', 'Sobe: XORs of its equations, direct and iterative',
        some(8, '--xors -k 3,4,5 -m 2 -w 3', '--xors -k 4,10,20 -m 2,4,8'),
        x='k', y='direct', lines=('matrix', 'm', 'w')),
    Experiment(
        'S2', 'Sobe: styles and threads',
        some(8, '--batch 1 -k 4 -m 2 -w 3 --cell 96K,192K,3M --threads 1,all '
             f'--overall --engine {SOBES}'),
        x='cell', lines=('engine', 'threads')),
    Experiment(
        'S3', 'Sobe: time of each phase',
        some(8, *('--overall --batch 1 --engine sobe_cl,sobe_cl:direct16 '
                  '-k %d -m %d -w %d --cell %d' % c for c in
                  ((1, 1, 1, 16), (3, 2, 3, 3 * 7168), (4, 2, 3, 3 * 32768)))),
        x='cell', y='seconds', lines=('engine',)),
    Experiment(
        'B1', 'Gibraltar: overall, against k',
        every_k((9, 12, 15), '--overall --engine gibraltar,cuda,' + CPU +
                ' --cell 1M --encode --decode data', (2, 3, 4))),
    Experiment(
        'B2', 'Gibraltar: against the size of a buffer',
        some(8, '--overall --engine gibraltar --batch 1 -m 2 -k 2-16 '
             '--cell 32K,64K,128K,256K,512K,1M'),
        x='cell', lines=('k',), log_x=True),
    Experiment(
        'B3', 'Gibraltar: overall, and on the device',
        some(9, '--engine gibraltar --cell 1M -m 2,4,8,16 -k 2,8,16') +
        [Call(15, '--engine gibraltar --cell 1M -m 2-16 -k 3-7,9-15',
              few=False)],
        lines=('metric', 'm')),
]
