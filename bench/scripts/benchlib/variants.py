# variants.py: which variant of each published system is compared with ours.
#
# Pure.  A system's last stage is not its fastest on every device.  So all
# variants are measured for one k of each m (experiments V1 and V2), and those
# that are fastest there go on to every k (A1 and A2).
#
# SPDX-License-Identifier: BSD-3-Clause

SEEDS = ('gibraltar', 'rscode', 'gmpe', 'smpe', 'gcrs', 'sobe_cl')
# In an array of larger chunks than a byte code needs.
CRS = ('gmpe', 'smpe', 'gcrs', 'sobe_cl')

MOST = 2                        # of a system, by what it does on the device
CLOSE = 0.9                     # of the fastest one


def seed_of(row):
    return row['engine'].split(':')[0]


def is_seed(row):
    return seed_of(row) in SEEDS


def counts(row, metric, m):
    """Several devices are not compared with one."""
    return (is_seed(row) and row['metric'] == metric and row['m'] == m and
            'gb_per_s' in row and not row['engine'].endswith('gpus'))


def ranked(rows, metric, m):
    """Of each system the rows, the fastest first."""
    found = {seed: [] for seed in SEEDS}
    for row in rows:
        if counts(row, metric, m):
            found[seed_of(row)].append(row)
    return {seed: sorted(of, key=lambda r: -r['gb_per_s'])
            for seed, of in found.items() if of}


def raw(rows, m):
    """Of each system the names of the fastest variants."""
    return {seed: [r['engine'] for r in of[:MOST]
                   if r['gb_per_s'] >= CLOSE * of[0]['gb_per_s']]
            for seed, of in ranked(rows, 'raw', m).items()}


def overall(rows, m):
    """Of each system the fastest variant and its number of slices."""
    return {seed: (of[0]['engine'], of[0]['slices'])
            for seed, of in ranked(rows, 'overall', m).items()}


def fastest(rows, m):
    """Of all systems, on the device; None: nothing was measured."""
    every = [of[0] for of in ranked(rows, 'raw', m).values()]
    best = max(every, key=lambda r: r['gb_per_s'], default=None)
    return best and best['engine']


def shape(row):
    return row['k'], row['m'], row['op'], row['metric']


def beside(rows):
    """Each of our rows gets the best of the published systems for the same
    k, m and operation."""
    best = {}
    for row in rows:
        if is_seed(row) and 'gb_per_s' in row:
            key = shape(row)
            if key not in best or \
               best[key]['gb_per_s'] < row['gb_per_s']:
                best[key] = row
    for row in rows:
        if not is_seed(row) and shape(row) in best and 'gb_per_s' in row:
            other = best[shape(row)]
            row['best'] = other['gb_per_s']
            row['best_engine'] = other['engine']
            row['ratio'] = float(f'{row["gb_per_s"] / row["best"]:.4g}')
    return rows
