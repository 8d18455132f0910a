# papers.py: the results of experiments as files: ID.csv with every row, ID.md
# with a table under the commands, ID.svg with a chart, README.md with a list.
#
# SPDX-License-Identifier: BSD-3-Clause

import csv
import os
import sys

from benchlib import campaign, plot, variants
from benchlib.server import Failed

CHART = '![%s](%s.svg)\n'
WORDS = ('engine', 'op', 'metric', 'matrix')
# As fast as ours: less apart than two runs of the same kernel may be.
SAME = 1.02


class Result:
    """What was measured of an experiment."""

    def __init__(self, experiment, records):
        self.experiment = experiment
        self.records = [r for r in records if r['name'] == experiment.name]
        self.machine = {}
        for r in self.records:
            self.machine.update((k, v) for k, v in r['top'].items()
                                if k not in campaign.LISTS)
        rows = campaign.rows_of(self.records, experiment.name)
        self.skipped = sorted(
            {f'{r["engine"]} {r["k"]}+{r["m"]}: {r["skipped"]}'
             for r in rows if 'skipped' in r} |
            {f'{r.get("made", r["args"])}: {r["failed"]}'
             for r in self.records if 'failed' in r})
        self.wrong = [f'{r["engine"]} {r["k"]}+{r["m"]}: {r["wrong"]}'
                      for r in rows if 'wrong' in r]
        rows = [r for r in rows if not r.keys() & {'skipped', 'wrong'}]
        if experiment.after:
            rows = experiment.after(rows, self.machine)
        for n, row in enumerate(rows):
            row['row'] = n + 1
        self.rows = rows
        self.seconds = sum(r['seconds'] for r in self.records)

    def missing(self):
        """Calls that were not made, or not to their end."""
        made = {r['args'] for r in self.records if not r['partial']}
        return len({c.args for c in self.experiment.calls} - made)


def columns_of(rows):
    columns = []
    for row in rows:
        columns += [c for c in row if c not in columns and c != 'row']
    return columns


def write_csv(path, rows):
    with open(path, 'w', newline='') as f:
        writer = csv.DictWriter(f, columns_of(rows), extrasaction='ignore',
                                lineterminator='\n')
        writer.writeheader()
        writer.writerows(rows)


def text_of(value):
    return f'{value:.4g}' if isinstance(value, float) else str(value)


def lines_of_table(columns, rows):
    yield '| ' + ' | '.join(columns) + ' |'
    yield '|' + '---|' * len(columns)
    for row in rows:
        yield '| ' + ' | '.join(text_of(row.get(c, ''))
                                for c in columns) + ' |'


def every_row(rows):
    """Columns with only one value are written once."""
    columns = columns_of(rows)
    same = [c for c in columns
            if len(rows) > 1 and len({str(r.get(c, '')) for r in rows}) == 1]
    if same:
        yield 'All: ' + ', '.join(f'{c} {text_of(rows[0][c])}'
                                  for c in same) + '.'
        yield ''
    yield from lines_of_table([c for c in columns if c not in same], rows)


def variant_of(row):
    """What is written behind a rate: the variant, and its slices."""
    words = row['engine'].split(':')[1:]
    if row['slices']:
        words.append(f'{row["slices"]} slices')
    return ''.join(f' {w}' for w in words)


def beside_rows(rows):
    """A row for each shape and operation: ours, and of each system the
    fastest variant."""
    found = {}
    for row in rows:
        if 'gb_per_s' not in row:
            continue
        one = found.setdefault((row['m'], row['k'], row['op']), {})
        seed = variants.seed_of(row) if variants.is_seed(row) else 'ours'
        if seed not in one or one[seed]['gb_per_s'] < row['gb_per_s']:
            one[seed] = row
    for (m, k, op), one in sorted(found.items()):
        cells = {s: f'{r["gb_per_s"]:.4g}' +
                 (variant_of(r) if s != 'ours' else '')
                 for s, r in one.items()}
        ours = one.get('ours', {})
        yield dict(cells, **{'k+m': f'{k}+{m}', 'op': op,
                             'the best': ours.get('best_engine', ''),
                             'ours to it': ours.get('ratio', '')})


def beside_seeds(rows):
    """A table that has the systems beside each other, and where none of ours
    is faster."""
    yield ('GB/s of data; of each system the fastest variant measured there, '
           'and its slices if they are not its own.')
    yield ''
    yield from lines_of_table(['k+m', 'op', 'ours', *variants.SEEDS,
                               'the best', 'ours to it'],
                              list(beside_rows(rows)))
    ratios = [r for r in rows if 'ratio' in r]
    if not ratios:
        return
    close = [r for r in ratios if r['ratio'] < SAME]
    least, most = (f(r['ratio'] for r in ratios) for f in (min, max))
    yield ''
    yield (f'Ours is {least:.2f} to {most:.2f} times as fast as the best of '
           f'the others, in {len(ratios)} cases.')
    yield ''
    if not close:
        yield f'None is as fast, within {100 * SAME - 100:.0f} %.'
        return
    yield f'As fast as ours, within {100 * SAME - 100:.0f} %, or faster:'
    yield ''
    for r in sorted(close, key=lambda r: r['ratio']):
        yield (f'- {r["best_engine"]}, {r["k"]}+{r["m"]} {r["op"]}: '
               f'{r["best"]:.4g} GB/s, ours {r["gb_per_s"]:.4g}')


def write_markdown(path, result, has_chart):
    e = result.experiment
    with open(path, 'w') as f:
        print(f'# {e.name}: {e.title}\n', file=f)
        for made in sorted({r['made'] for r in result.records
                            if 'made' in r}):
            print(f'    bench/scripts/bench {made}', file=f)
        print(file=f)
        if has_chart:
            print(CHART % (e.name, e.name), file=f)
        for line in (beside_seeds if e.beside else every_row)(result.rows):
            print(line, file=f)
        if result.skipped or result.missing():
            print('\nNot measured:\n', file=f)
            for why in result.skipped:
                print(f'- {why}', file=f)
            if result.missing():
                print(f'- {result.missing()} of {len(e.calls)} commands: '
                      'there was no time', file=f)


def chart_lines(experiment, rows):
    """The lines of a chart: name to points."""
    used = [c for c in experiment.lines
            if len({str(r.get(c, '')) for r in rows}) > 1]
    lines = {}
    for row in rows:
        if experiment.x not in row or experiment.y not in row:
            continue
        name = ' '.join(f'{row.get(c, "")}' if c in WORDS
                        else f'{c}={row.get(c, "")}' for c in used)
        lines.setdefault(name or experiment.name, []).append(
            (row[experiment.x], row[experiment.y]))
    return lines


def write_chart(path, experiment, rows):
    lines = chart_lines(experiment, rows)
    if not lines or not plot.is_possible():
        return False
    try:
        plot.draw(path, {n: sorted(p) for n, p in lines.items()},
                  experiment.x, experiment.y,
                  f'{experiment.name}: {experiment.title}', experiment.log_x)
    except Failed as e:
        print(f'bench-gpu: {e}', file=sys.stderr)
        return False
    return True


def write_index(path, results, machine, dates):
    with open(path, 'w') as f:
        print('# The experiments of the founding papers, repeated\n', file=f)
        print(f'Made by `bench/scripts/bench-gpu`, {dates}.\n', file=f)
        print('| | |\n|---|---|', file=f)
        for key, value in machine.items():
            print(f'| {key} | {text_of(value)} |', file=f)
        print('\n| experiment | rows | seconds | commands |\n|---|---|---|---|',
              file=f)
        for r in results:
            e, nr = r.experiment, len(r.experiment.calls)
            print(f'| [{e.name}: {e.title}]({e.name}.md) | {len(r.rows)} | '
                  f'{r.seconds:.0f} | {nr - r.missing()} of {nr} |', file=f)


def write_devices(folder):
    """The list of the folders."""
    with open(os.path.join(folder, 'README.md'), 'w') as f:
        print('# The experiments of the founding papers, repeated\n', file=f)
        print('[benchmarks.md](../benchmarks.md#the-founding-systems) says '
              'what they show.\n', file=f)
        for name in sorted(os.listdir(folder)):
            if os.path.exists(os.path.join(folder, name, 'README.md')):
                print(f'- [{name}]({name}/README.md)', file=f)


def of_one_run(key):
    return key.startswith(('t_', 'rho', 'mean_error', 'crossover'))


def write(folder, experiments, records):
    """All files.  What was wrong."""
    os.makedirs(folder, exist_ok=True)
    results = [Result(e, records) for e in experiments]
    machine, wrong = {}, [f'{r.experiment.name}: {w}' for r in results
                          for w in r.wrong]
    results = [r for r in results if r.rows]
    for r in results:
        base = os.path.join(folder, r.experiment.name)
        machine.update((k, v) for k, v in r.machine.items()
                       if not of_one_run(k))
        write_csv(base + '.csv', r.rows)
        write_markdown(base + '.md', r,
                       write_chart(base + '.svg', r.experiment, r.rows))
    dates = sorted({r['at'].split()[0] for r in records})
    if results:
        write_index(os.path.join(folder, 'README.md'), results, machine,
                    ' to '.join(dict.fromkeys((dates[0], dates[-1]))))
    return wrong
