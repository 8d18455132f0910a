# plots.py: the plots of docs/benchmarks.md, from its tables.
#
# A table is found by its first line, so that a plot can't show other numbers
# than the table.
#
# SPDX-License-Identifier: BSD-3-Clause

import math
import re
import sys

from pictures import svg

BLUE, ORANGE, GREEN = '#2f6fbd', '#d9822b', '#2e8b57'
CODERS = (BLUE, '#8fb8e8', ORANGE, GREEN)
OTHERS = ('#8250df', '#bf3989', '#57606a', '#0a7d8c', '#9a6700', '#cf222e')


def cells(line):
    return [c.strip() for c in line.strip().strip('|').split('|')]


def read_tables(text):
    """A list of tables, each a list of rows; the first is its head."""
    tables, table = [], []
    for line in text.split('\n') + ['']:
        if line.startswith('|'):
            table.append(cells(line))
        elif table:
            # The second line is that under the head.
            tables.append([table[0]] + table[2:])
            table = []
    return tables


def find(tables, *head):
    """The first table whose head begins like this."""
    for t in tables:
        if t[0][:len(head)] == list(head):
            return t
    sys.exit('make-pictures: docs/benchmarks.md: no table begins with '
             f'| {" | ".join(head)} |')


def value(cell):
    """Its first number."""
    m = re.match(r'[\d.]+', cell)
    if m is None:
        sys.exit(f'make-pictures: docs/benchmarks.md: no number: {cell!r}')
    return float(m.group())


def legend(p, x, y, names, colours):
    for name, colour in zip(names, colours):
        p.rect(x, y - 10, 12, 12, colour, colour)
        p.text(x + 18, y, name, 12)
        x += 34 + 8 * len(name)


def bars(p, box, groups, colours, top, step, unit, labels=True):
    """Bars from the left: groups of (name, values), a bar for each value."""
    x, y, width, height = box
    scale = width / top
    for i in range(int(top / step) + 1):
        at = x + i * step * scale
        p.line(at, y, at, y + height, '#d1d9e0')
        p.text(at, y + height + 18, svg.number(i * step), 11, 'middle',
               svg.GREY)
    p.text(x + width, y + height + 36, unit, 12, 'end', svg.GREY)
    each = height / len(groups)
    thick = (each - 10) / len(colours)
    for i, (name, values) in enumerate(groups):
        start = y + i * each + 5
        p.text(x - 10, start + (each - 10) / 2 + 4, name, 12, 'end')
        for j, v in enumerate(values):
            bar = min(v, top) * scale
            p.rect(x, start + j * thick, bar, thick - 2, colours[j],
                   colours[j])
            if labels:
                p.text(x + bar + 5, start + j * thick + thick - 4,
                       svg.number(v), 11, fill=svg.GREY)
    p.line(x, y, x, y + height, svg.INK)


def lines(p, box, xs, series, colours, low, high, unit):
    """Over xs, on a logarithmic axis from 10^low to 10^high."""
    x, y, width, height = box

    def at(v):
        return y + height * (high - math.log10(v)) / (high - low)

    for e in range(low, high + 1):
        p.line(x, at(10 ** e), x + width, at(10 ** e), '#d1d9e0')
        p.text(x - 8, at(10 ** e) + 4, str(10 ** e), 11, 'end', svg.GREY)
    places = [x + width * (i + 0.3) / len(xs) for i in range(len(xs))]
    for place, label in zip(places, xs):
        p.text(place, y + height + 18, label, 12, 'middle')
    p.text(x - 8, y - 10, unit, 12, 'end', svg.GREY)
    last = -1000
    for (name, values), colour in sorted(
            zip(series, colours), key=lambda s: -s[0][1][-1]):
        points = [(place, at(v)) for place, v in zip(places, values)]
        p.polyline(points, colour, 3 if name == 'ours' else 1.5)
        for point in points:
            p.circle(*point, 3, colour)
        # Names beside the last points do not overlap.
        last = max(points[-1][1] + 4, last + 14)
        p.text(places[-1] + 10, last, name, 12, fill=colour)


def encode(tables):
    p = svg.Picture(880, 390, 'Encoding rates: the CPU, CUDA and both, and '
                    'the founding systems')
    table = find(tables, 'k+m', '', 'engine', 'GB/s')
    rates = {(r[0], r[2]): value(r[3]) for r in table[1:] if r[1] == 'encode'}
    p.text(24, 30, 'Host memory to host memory', 14, weight='bold')
    p.text(24, 48, 'encode', 12, fill=svg.GREY)
    legend(p, 80, 74, ('simd', 'isal', 'cuda', 'auto (simd, cuda)'), CODERS)
    bars(p, (80, 86, 300, 250),
         [(shape, [rates[shape, name]
                   for name in ('simd', 'isal', 'cuda', 'auto')])
          for shape in dict.fromkeys(shape for shape, _ in rates)],
         CODERS, 100, 20, 'GB/s of data')

    table = find(tables, 'k+m', 'system', 'variant')
    rates = {(r[0], r[1]): value(r[3]) for r in table[1:]
             if r[0].endswith('+4')}
    shapes = sorted({shape for shape, _ in rates},
                    key=lambda shape: int(shape.split('+')[0]))
    # Of those that were measured at each k.
    names = [n for n in dict.fromkeys(name for _, name in rates)
             if all((shape, n) in rates for shape in shapes)]
    p.text(450, 30, 'The kernel, and the founding systems', 14, weight='bold')
    p.text(450, 48, 'encode, m = 4, data on the device', 12, fill=svg.GREY)
    lines(p, (500, 86, 280, 250), shapes,
          [(n, [rates[shape, n] for shape in shapes]) for n in names],
          (ORANGE,) + OTHERS, 1, 4, 'GB/s')
    return p.svg()


def cost(tables):
    p = svg.Picture(880, 350, 'The rates of arrays with journal and '
                    'checksums, in percent of those without')
    table = find(tables, 'healthy', 'unit', 'none', 'journal', 'of none')
    p.text(24, 30, 'What journal and checksums cost', 14, weight='bold')
    p.text(24, 48, '4+2, in percent of the rate of consistency=none', 12, fill=svg.GREY)
    legend(p, 600, 48, ('journal', 'journal, checksums'), (BLUE, ORANGE))
    bars(p, (250, 64, 580, 236),
         [(r[0], [value(r[4]), value(r[6])]) for r in table[1:]],
         (BLUE, ORANGE), 120, 20, '%')
    return p.svg()


def written(tables):
    p = svg.Picture(880, 390, 'Bytes written to members for each byte that '
                    'a client writes')
    table = find(tables, 'bytes written to members per byte written')
    p.text(24, 30, 'Bytes written to members for each byte written', 14,
           weight='bold')
    p.text(24, 48, '4+2', 12, fill=svg.GREY)
    legend(p, 560, 48, ('none', 'journal', 'journal, checksums'),
           (GREEN, BLUE, ORANGE))
    bars(p, (290, 64, 540, 276),
         [(r[0], [value(c) for c in r[1:4]]) for r in table[1:]],
         (GREEN, BLUE, ORANGE), 9, 1, 'bytes')
    return p.svg()
