# table.py: results as text and as JSON.
#
# SPDX-License-Identifier: BSD-3-Clause

import json


def size(n):
    """65536 as 64K."""
    unit = 0
    while unit < 3 and n and n % 1024 == 0:
        n //= 1024
        unit += 1
    return f'{n}{"KMG"[unit - 1] if unit else ""}'


class Report:
    """Lines are printed at once; with --json one object at the end."""

    def __init__(self, json_only):
        self.json_only = json_only
        self.top = {}

    def line(self, text):
        if not self.json_only:
            print(text, flush=True)

    def add(self, key, value):
        """Beside the rows."""
        self.top[key] = value
        self.line(f'# {key}: {value}')

    def end(self):
        if self.json_only:
            print(json.dumps(self.top, indent=2))


# Of a row: the key, its format, and the head of the column.
CASE = (('engine', '<22', 'engine'), ('op', '<10', 'op'),
        ('metric', '<7', ''), ('code', '<4', 'code'), ('k', '3', 'k'),
        ('m', '3', 'm'), ('w', '1', 'w'), ('cell', '>7', 'cell'),
        ('rects', '6', 'rects'), ('threads', '3', 'thr'))
RATES = (('gb_per_s', '9.3f', 'GB/s'), ('all_gb_per_s', '9.3f', 'k+m GB/s'),
         ('share', '6.1%', 'share'), ('cpu_s_per_gb', '8.4f', 'CPU s/GB'),
         ('spread', '6.1%', 'spread'))
SUSTAINED = (('sustained_gb_per_s', '9.3f', 'sustained'),
             ('sustained_share', '6.1%', 'share'), ('clock_mhz', '5', 'MHz'),
             ('power_w', '6.1f', 'W'))
LATENCIES = tuple((f'{name}_us', '9.1f', f'{name} us')
                  for name in ('p50', 'p90', 'p99', 'min', 'max'))
XORS = (('matrix', '<8', 'matrix'), ('k', '3', 'k'), ('m', '3', 'm'),
        ('w', '3', 'w')) + tuple(
    (key, '9', head) for key, head in (
        ('ones', 'ones'), ('direct', 'direct'), ('iterative', 'iterative'),
        ('greedy', 'greedy'), ('best', 'best'), ('paper_direct', 'paper:dir'),
        ('paper_iterative', 'paper:it')))


def width(form):
    """The same for text."""
    return form if form[0] in '<>' else '>' + form.split('.')[0]


def head(columns):
    return ' '.join(format(text, width(form)) for _, form, text in columns)


def cells(columns, row):
    return ' '.join(format(row[key], form) if key in row
                    else format('-', width(form))
                    for key, form, _ in columns)


def show(row, columns):
    """A row of a sweep; columns: () to verify."""
    text = cells(CASE, dict(row, cell=size(row['cell'])))
    if 'wrong' in row:
        text += f' WRONG: {row["wrong"]}'
    elif 'skipped' in row:
        text += f' - {row["skipped"]}'
    else:
        text += ' ' + (cells(columns, row) if columns else 'right')
    return text + (f'  ({row["note"]})' if row.get('note') else '')
