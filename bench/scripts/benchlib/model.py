# model.py: G-CRS's performance model, fitted and compared.
#
# A warp codes 32 longs of each of k chunks: (k+m) accesses of 256 bytes to
# memory, and k*m*w operations on an SM.  The time is the longer of the two.
#
# The paper counts transactions, 2048 / bus width of them an access.  With the
# wide buses of today that is less than one, so here an access has a cost of
# its own: T_access = 2048 / BW * T_DRAM.
#
# SPDX-License-Identifier: BSD-3-Clause

from benchlib import options
from benchlib.rows import digits, median, times_for
from benchlib.server import Failed
from benchlib.table import cells, head

WARP_LEN = 256                  # bytes: 32 longs

# The k at which the cost of an operation is measured: large, so that there are
# many operations for each access that is left.
FIT_K = 12

COLUMNS = (('k', '3', 'k'), ('m', '3', 'm'), ('w', '1', 'w'),
           ('r', '7.4f', 'r'), ('predicted_gb_per_s', '10.2f', 'predicted'),
           ('measured_gb_per_s', '10.2f', 'measured'),
           ('traffic_gb_per_s', '9.2f', 'traffic'), ('error', '8.2%', 'error'))


class Model:
    def __init__(self, core_hz, nr_sms, t_access=0, t_sm=0):
        self.cycles = core_hz * nr_sms  # a second, of all SMs together
        self.t_access = t_access        # cycles of an SM, for 256 bytes
        self.t_sm = t_sm                # cycles, for one operation of a warp

    def fit_access(self, copy):
        """From bytes a second, read and written."""
        return WARP_LEN * self.cycles / copy

    def fit_sm(self, m, w, rate):
        """From data bytes a second of the kernel without loads."""
        return WARP_LEN * self.cycles / (m * w * rate)

    @staticmethod
    def r(k, m, w):
        """Accesses for each operation; up to rho the SM is the limit."""
        return (1 / m + 1 / k) / w

    def rho(self):
        return self.t_sm / self.t_access

    def rate(self, k, m, w):
        """Data bytes a second."""
        each = k * m * w * self.t_sm if self.r(k, m, w) <= self.rho() \
            else (k + m) * self.t_access
        return k * WARP_LEN * self.cycles / each


def measure(bench, engine, k, m, w):
    """Data bytes a second."""
    opts, server = bench.opts, bench.server
    try:
        run = server.need('open', engine=engine, k=k, m=m, w=w,
                          cell=opts.cell[0], rects=opts.batch[0],
                          memory=opts.memory, seed=opts.seed)
        what = {'id': run['id'], 'metric': 'raw'}
        times = times_for(server, run['id'], 'raw', opts.seconds)
        seconds = server.need('sample', nr=opts.samples, times=times,
                              **what)['seconds']
        server.need('close', id=run['id'])
    except Failed as e:
        raise Failed(f'{engine} {k}+{m}, w {w}: {e}')
    return k * run['cell'] * run['rects'] / median(seconds)


def fit(bench, shapes, widths):
    """The mean over all m and w: the model has one constant for all."""
    ceilings, device = bench.machine.ceilings(), bench.machine.device()
    for answer in ceilings, device:
        if 'failed' in answer:
            raise Failed(f'--model: {answer["failed"]}')
    model = Model(device['core_hz'], device['sms'])
    model.t_access = model.fit_access(ceilings['copy'])
    found = [model.fit_sm(m, w, measure(bench, 'gcrs:no-loads',
                                        min(FIT_K, (1 << w) - m), m, w))
             for m in dict.fromkeys(m for _, m in shapes)
             for w in widths if m < 1 << w]
    if not found:
        raise Failed('--model: no w that these m can do')
    model.t_sm = sum(found) / len(found)
    return model


def run(bench, report):
    shapes = options.shapes(bench.opts)
    widths = [w.get('w') or w['w_floor'] for w in bench.opts.w]
    model = fit(bench, shapes, widths)
    report.add('t_access', digits(model.t_access))
    report.add('t_sm', digits(model.t_sm))
    report.add('rho', digits(model.rho()))
    report.line(head(COLUMNS))
    report.top['model'] = rows = []
    for w in widths:
        for k, m in shapes:
            if k + m > 1 << w:
                continue
            predicted = model.rate(k, m, w)
            measured = measure(bench, 'gcrs', k, m, w)
            rows.append({
                'k': k, 'm': m, 'w': w, 'r': digits(model.r(k, m, w)),
                'predicted_gb_per_s': digits(predicted / 1e9),
                'measured_gb_per_s': digits(measured / 1e9),
                'traffic_gb_per_s': digits(measured * (k + m) / k / 1e9),
                'error': digits(abs(predicted - measured) / measured)})
            report.line(cells(COLUMNS, rows[-1]))
    if not rows:
        raise Failed('--model: no k that these m and w can do')
    report.add('mean_error', digits(sum(r['error'] for r in rows) / len(rows)))
