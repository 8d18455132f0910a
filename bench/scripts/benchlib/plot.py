# plot.py: draw lines with gnuplot.
#
# SPDX-License-Identifier: BSD-3-Clause

import shutil
import subprocess

from benchlib.server import Failed

# What can be the horizontal axis: the first of those with the most different
# values.
AXES = ('k', 'slices', 'threads', 'cell', 'm', 'w', 'rects')


def is_possible():
    return shutil.which('gnuplot') is not None


def draw(path, lines, x, y, title='', log_x=False):
    """lines: a name and its points, each.  Failed without gnuplot."""
    if not is_possible():
        raise Failed(f'{path}: gnuplot is not installed')
    out = [f'set terminal {path.rsplit(".", 1)[1]} size 1000,600 noenhanced',
           f'set output "{path}"', f'set title "{title}"',
           f'set xlabel "{x}"', f'set ylabel "{y}"',
           'set grid', 'set yrange [0:*]', 'set key outside right']
    if log_x:
        out.append('set logscale x 2')
    for n, points in enumerate(lines.values()):
        out.append(f'$line{n} << EOD')
        out += [f'{a} {b}' for a, b in points]
        out.append('EOD')
    out.append('plot ' + ', '.join(
        f'$line{n} using 1:2 with linespoints title "{name}"'
        for n, name in enumerate(lines)))
    done = subprocess.run(['gnuplot'], input='\n'.join(out) + '\n', text=True,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failed(f'{path}: gnuplot: {done.stderr.strip()}')


def draw_rows(path, rows, latency):
    """A line for each engine, over the axis with the most values."""
    rows = [r for r in rows if not r.keys() & {'skipped', 'wrong'}]
    count = {axis: len({r[axis] for r in rows}) for axis in AXES}
    x = max(AXES, key=count.get)
    # Rects that a method adapts do not make a line of their own, nor does the
    # w that goes with k.
    others = [a for a in AXES if a not in (x, 'rects', 'w') and count[a] > 1]
    lines = {}
    for r in rows:
        name = ' '.join([r['engine'], r['op'], r['metric']] +
                        [f'{a} {r[a]}' for a in others])
        lines.setdefault(name, []).append(
            (r[x], r['p50_us'] if latency else r['gb_per_s']))
    draw(path, lines, x, 'median, us' if latency else 'GB/s of data',
         log_x=x in ('cell', 'rects'))
