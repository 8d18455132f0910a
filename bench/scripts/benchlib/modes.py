# modes.py: what bench/scripts/bench can be asked for.
#
# SPDX-License-Identifier: BSD-3-Clause

import sys

from benchlib import (cases, crossover, model, options, phases, plot, power,
                      table, tunings)
from benchlib.rows import Bench
from benchlib.server import Failed, Machine

# The numbers printed in Sobe's papers.
SOBE = {('sobe_c', 5, 2, 3): {'paper_direct': 45, 'paper_iterative': 33},
        ('sobe_c', 4, 2, 3): {'paper_direct': 38}}


def gb(rate):
    return round(rate / 1e9, 2)


def describe_card(report, machine):
    try:
        nvml = machine.nvml()
        report.add('driver', nvml.driver())
        report.add('power_limit_w', nvml.limit())
    except power.Absent as e:
        report.add('nvml', str(e))


def describe_opencl(report, machine):
    """Sobe's equations run on what OpenCL has, whatever that is."""
    answer = machine.keep('opencl', {})
    report.add('opencl_device', answer.get('name') or answer['failed'])


def describe(report, bench, gpu, ceilings):
    """The machine, and its ceilings in GB/s."""
    machine = bench.machine
    report.add('version', machine.about['version'])
    report.add('processor', machine.about['processor'])
    device = machine.device() if gpu else {'failed': ''}
    if gpu:
        report.add('device' if 'bus' in device else 'no_device',
                   device.get('name') or device['failed'])
    if 'bus' in device:
        describe_card(report, machine)
    for threads in bench.opts.threads if ceilings else []:
        report.add(f'memcpy_{threads}', gb(machine.memcpy(threads)))
    if 'failed' in device or not ceilings:
        return
    c = machine.ceilings()
    if 'failed' in c:
        print(f'bench: ceilings: {c["failed"]}', file=sys.stderr)
        return
    for key, name in (('device_copy', 'copy'), ('h2d', 'h2d'),
                      ('d2h', 'd2h'), ('both_ways', 'both')):
        report.add(key, gb(c[name]))


def sweep(bench, report):
    """A row for every case; it stops at wrong bytes."""
    opts, rows = bench.opts, []
    names = cases.engines(bench.server, bench.machine, opts)
    bare = {n.split(':')[0] for n in names}
    columns = () if opts.verify_only else \
        table.LATENCIES if opts.latency else table.RATES
    describe(report, bench, any(bench.machine.engines[n]['gpu']
                                for n in bare), columns == table.RATES)
    if 'sobe_cl' in bare:
        describe_opencl(report, bench.machine)
    if opts.sustained:
        columns += table.SUSTAINED
    report.line(table.head(table.CASE + columns))
    report.top['rows'] = rows
    for row in bench.rows(names):
        rows.append(row)
        report.line(table.show(row, columns))
        if 'wrong' in row:
            raise Failed(f'{row["engine"]} is wrong: {row["wrong"]}')
    if not rows:
        raise Failed('nothing to measure')
    if all('skipped' in r for r in rows):
        raise Failed('nothing could be measured: '
                     f'{rows[-1]["engine"]}: {rows[-1]["skipped"]}')
    if opts.plot:
        plot.draw_rows(opts.plot, rows, opts.latency)


def xors(bench, report):
    report.line(table.head(table.XORS))
    report.top['xors'] = rows = []
    for k, m in options.shapes(bench.opts):
        for w in bench.opts.w:
            for row in bench.server.need('xors', k=k, m=m, **w)['rows']:
                row.update(SOBE.get((row['matrix'], k, m, row['w']), {}))
                rows.append(row)
                report.line(table.cells(table.XORS, row))


def show_engines(machine):
    for e in machine.engines.values():
        print(f'{e["name"]:12} {e["what"]}{" [GPU]" if e["gpu"] else ""}')
        others = f'; {e["others"]}' if e['others'] else ''
        if e['options']:
            print(f'{"":12} options: {e["options"]}{others}')


def run(opts, server, report):
    """Into the report also what was measured before an error."""
    bench = Bench(opts, server, Machine(server, opts.memory, opts.gpus))
    if opts.mode == 'list':
        show_engines(bench.machine)
        return
    if opts.mode is None:
        sweep(bench, report)
        return
    describe(report, bench, opts.mode != 'xors', opts.mode == 'ceilings')
    other = {'xors': xors, 'crossover': crossover.run, 'model': model.run,
             'phases': phases.run, 'tunings': tunings.run}.get(opts.mode)
    if other:
        other(bench, report)
