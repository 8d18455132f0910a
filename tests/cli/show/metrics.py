#!/usr/bin/python3
# metrics.py: read the text format of Prometheus strictly, for tests.
#
#   metrics.py compare FILE STATUS...   FILE has what the statuses
#                                             (JSON, each with "name") say
#   tests/cli/show/metrics.py names FILE               the names of all families
#
# SPDX-License-Identifier: BSD-3-Clause

import json
import re
import sys

NAME = re.compile(r'[a-z][a-z0-9_]*')
VALUE = re.compile(r'(?:0|[1-9][0-9]*)(?:\.[0-9]+)?')
ESCAPES = {'\\': '\\', '"': '"', 'n': '\n'}


def read_labels(line, pos):
    """From behind {: the labels, and where } ends."""
    labels = {}
    while True:
        name = NAME.match(line, pos)
        assert name and line[name.end():name.end() + 2] == '="', line
        assert name.group() not in labels, line
        pos = name.end() + 2
        value = ''
        while line[pos] != '"':
            if line[pos] == '\\':
                pos += 1
                value += ESCAPES[line[pos]]
            else:
                value += line[pos]
            pos += 1
        labels[name.group()] = value
        pos += 1
        if line[pos] == '}':
            return labels, pos + 1
        assert line[pos] == ',', line
        pos += 1


def parse(text):
    """{name: (type, [(labels, value)])}"""
    families = {}
    seen = set()
    name = None
    assert text == '' or text.endswith('\n')
    lines = iter(text.split('\n')[:-1])
    for line in lines:
        if line.startswith('# HELP '):
            name, what = line[len('# HELP '):].split(' ', 1)
            assert NAME.fullmatch(name) and what.endswith('.'), line
            assert name not in families, f'{name}: twice'
            line = next(lines)
            kind = re.fullmatch(r'# TYPE (\S+) (counter|gauge)', line)
            assert kind and kind.group(1) == name, line
            families[name] = (kind.group(2), [])
            continue
        start = NAME.match(line)
        assert start and start.group() == name, f'not after its HELP: {line}'
        assert line[start.end()] == '{', line
        labels, pos = read_labels(line, start.end() + 1)
        assert line[pos] == ' ' and VALUE.fullmatch(line[pos + 1:]), line
        series = (name, tuple(sorted(labels.items())))
        assert series not in seen, f'twice: {line}'
        seen.add(series)
        families[name][1].append((labels, float(line[pos + 1:])))
    return families


def check_names(families):
    """As Prometheus' guidelines have it."""
    for name, (kind, samples) in families.items():
        assert name.startswith('gpuraid_'), name
        assert samples, f'{name}: no sample'
        assert (kind == 'counter') == name.endswith('_total'), name
        assert not re.search('_(ns|ms|kib|kb|ops)(_|$)', name), name


class Metrics:
    def __init__(self, families):
        self.families = families
        self.used = set()

    def find(self, name, /, **labels):
        return [value for have, value in self.families.get(name, (0, []))[1]
                if labels.items() <= have.items()]

    def get(self, name, /, **labels):
        self.used.add(name)
        found = self.find(name, **labels)
        assert len(found) == 1, f'{name} {labels}: {found}'
        return found[0]

    def expect(self, value, name, /, **labels):
        have = self.get('gpuraid_' + name, **labels)
        assert abs(have - value) <= 1e-9 * abs(value), \
            f'{name} {labels} is {have}, not {value}'


COUNTERS = {
    'read_ops': 'read_operations_total',
    'write_ops': 'write_operations_total',
    'zero_ops': 'zero_operations_total',
    'flush_ops': 'flush_operations_total',
    'fua_ops': 'fua_operations_total',
    'corrupt_found': 'corrupt_blocks_found_total',
    'corrupt_repaired': 'corrupt_blocks_repaired_total',
    'table_bytes': 'table_written_bytes_total',
    'hedge_bytes': 'hedge_read_bytes_total',
}
REASONS = ('members lost', 'resync running', 'resync pending', 'blocks lost',
           'no space', 'stalled', 'wrong blocks')
# Sums of what is there for each member or engine.
NOT_THERE = re.compile('member_.*|coder_bytes')


def compare_work(m, s, a):
    for what in 'rebuild', 'resync', 'grow', 'reshape', 'scrub':
        o = s[what] or {}
        m.expect(s[what] is not None, what + '_running', array=a)
        m.expect(o.get('done', 0), what + '_done_bytes', array=a)
        m.expect(o.get('total', 0), what + '_total_bytes', array=a)
        m.expect(o.get('bytes_per_second', 0), what + '_bytes_per_second',
                 array=a)
        m.expect(o.get('eta_seconds', 0), what + '_remaining_seconds',
                 array=a)
        if what in ('rebuild', 'resync'):
            m.expect(o.get('paused', False), what + '_paused', array=a)
    o = s['reshape'] or {'kind': None, 'state': None}
    for kind in 'parity', 'widen':
        for state in 'moving', 'paused', 'waiting', 'stopped', 'finishing':
            m.expect((kind, state) == (o['kind'], o['state']),
                     'reshape_state', array=a, kind=kind, state=state)
    o = s['scrub'] or {'paused': False, 'interrupted': False}
    m.expect(o['paused'] or o['interrupted'], 'scrub_paused', array=a)
    m.expect(s['growable'], 'growable_bytes', array=a)
    m.expect(s['rate_limit'], 'rate_limit_bytes_per_second', array=a)
    o = s['last_scrub']
    if o:
        m.expect(o['ended'], 'last_scrub_end_timestamp_seconds', array=a)
        m.expect(o['complete'], 'last_scrub_complete', array=a)
        m.expect(o['found'], 'last_scrub_found_blocks', array=a)
        m.expect(o['repaired'], 'last_scrub_repaired_blocks', array=a)
        m.expect(o['unlocated_rows'], 'last_scrub_unlocated_rows', array=a)
        m.expect(o['lost_rows'], 'last_scrub_lost_rows', array=a)


def compare_member(m, o, a):
    labels = {'array': a, 'path': o['path'] or o['uuid'] or '',
              'slot': '' if o['slot'] is None else str(o['slot'])}
    m.expect(o['state'] == 'active', 'member_up', **labels)
    for state in 'active', 'failed', 'missing', 'rebuilding', 'spare':
        m.expect(o['state'] == state, 'member_state', state=state, **labels)
    m.expect(o['errors'], 'member_io_errors_total', **labels)
    m.expect(o['bad_sums'], 'member_corrupt_blocks_total', **labels)
    error = 'member_last_error_timestamp_seconds'
    if o['last_error']:
        m.expect(o['last_error']['time'], error,
                 operation=o['last_error']['operation'],
                 message=o['last_error']['message'], **labels)
    else:
        assert not m.find('gpuraid_' + error, **labels), labels
    m.expect(o['no_answer_seconds'], 'member_no_answer_seconds', **labels)
    m.expect(o['no_space'], 'member_no_space', **labels)
    m.expect(o['slow'], 'member_slow', **labels)
    m.expect(o['no_connection'], 'member_no_connection', **labels)
    for part in 'median', 'p95':
        m.expect(o['read_%s_ns' % part] / 1e9, 'member_read_%s_seconds' % part,
                 **labels)
    for kind in 'read', 'write', 'flush':
        name = f'member_{kind}_'
        m.expect(o[kind + '_ops'], name + 'operations_total', **labels)
        m.expect(o[kind + '_ns'] / 1e9, name + 'seconds_total', **labels)
        if kind != 'flush':
            m.expect(o[kind + '_bytes'], name + 'bytes_total', **labels)


def compare(m, s):
    a = s['name']
    m.expect(s['state'] is not None, 'array_up', array=a)
    if s['state'] is None:
        return
    m.expect(1, 'array_info', array=a, uuid=s['uuid'], label=s['label'] or '',
             code=s['code'], coder=s['coder'], loop=s['loop'],
             data_members=str(s['k']), parity_members=str(s['m']))
    for state in 'healthy', 'degraded', 'failed':
        m.expect(s['state'] == state, 'array_state', array=a, state=state)
    assert set(s['reasons']) <= set(REASONS), s['reasons']
    for reason in REASONS:
        m.expect(reason in s['reasons'], 'array_reason', array=a,
                 reason=reason)
    m.expect(s['read_only'] is not None, 'array_read_only', array=a)
    m.expect(s['size'], 'array_size_bytes', array=a)
    m.expect(s['k'], 'array_data_members', array=a)
    m.expect(s['m'], 'array_parity_members', array=a)
    m.expect(s['epoch'], 'array_epoch', array=a)
    m.expect(s['connections'], 'array_connections', array=a)
    m.expect(s['lost_rows'], 'array_lost_rows', array=a)
    on = s['attached'] or {'device': '', 'way': '', 'mounted': []}
    m.expect(s['attached'] is not None, 'array_attached', array=a,
             device=on['device'], way=on['way'],
             mountpoint=(on['mounted'] or [''])[0])
    failed = s['failed_change']
    if failed:
        m.expect(failed['time'], 'failed_change_timestamp_seconds', array=a,
                 message=failed['message'])
    else:
        assert not m.find('gpuraid_failed_change_timestamp_seconds', array=a), a
    for o in s['members']:
        compare_member(m, o, a)
    compare_work(m, s, a)
    for key, value in s['counters'].items():
        if not NOT_THERE.fullmatch(key):
            m.expect(value, COUNTERS.get(key, key + '_total'), array=a)
    for i, e in enumerate(s['engines']):
        labels = {'array': a, 'engine': str(i), 'name': e['name']}
        m.expect(e['jobs'], 'coder_engine_jobs_total', **labels)
        m.expect(e['bytes'], 'coder_engine_input_bytes_total', **labels)
        m.expect(e['failed'] is not None, 'coder_engine_failed', **labels)
    for key in 'size', 'used', 'dirty':
        m.expect(s['cache'][key], f'cache_{key}_bytes', array=a)
    for key, value in s['stages'].items():
        m.expect(value / 1e9, 'stage_seconds_total', array=a,
                 stage=key.removesuffix('_ns'))
    # The status was asked later, which takes the lock.
    for key, scale, name in ('taken', 1, 'taken'), ('held_ns', 1e9,
                                                    'held_seconds'):
        value = m.get(f'gpuraid_lock_{name}_total', array=a) * scale
        assert 0 < value <= s['lock'][key] + .5, f'lock {key}: {value}'


def main():
    with open(sys.argv[2], newline='') as f:
        families = parse(f.read())
    check_names(families)
    if sys.argv[1] == 'names':
        print('\n'.join(families))
        return
    m = Metrics(families)
    for path in sys.argv[3:]:
        with open(path) as f:
            compare(m, json.load(f))
    rest = families.keys() - m.used
    assert not rest, f'in no status: {rest}'


if __name__ == '__main__':
    main()
