# alerts.py: which alerts of the example's rules are true in which state, for
# test-alerts.sh.
#
#   alerts.py GPURAID FOLDER
#
# A server of its own, in FOLDER, answers with a state; gpuraid metrics makes
# numbers of that.  Of "for" all the time counts as over.  If promtool is in PATH
# it must say the same.
#
# SPDX-License-Identifier: BSD-3-Clause

import copy
import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

import metrics
import promql
import yaml

states = importlib.import_module('status-states')

RULES = 'docs/examples/gpuraid-rules.yml'
DAY = 86400
# promtool counts from 1970: two numbers a day.
NOW = 60 * DAY
STEPS = 120
SCRUBBED = dict(states.LAST, ended=NOW - 20 * DAY)
OLD_METRICS = 'GpuraidOldMetrics'


def status(*reasons, last_scrub=SCRUBBED, **more):
    s = states.status(*reasons, last_scrub=last_scrub, **more)
    for m in s['members']:
        for key, value in dict(no_space=False, slow=False, bad_sums=0,
                               no_answer_seconds=0).items():
            m.setdefault(key, value)
    return s


def error(seconds):
    return {'last_error': dict(states.LOST['last_error'],
                               time=NOW - seconds), 'errors': 1}


SPARE = dict(states.member(0), slot=None, path='/srv/spare', state='spare')
TARGET = {1: {'state': 'rebuilding', 'path': '/srv/spare'}}
HEALTHY = status()
LOST = {'state': 'failed'}

# A name, what was a day ago, what is now (None: no answer), and the alerts.
STATES = [
    ('healthy', HEALTHY, HEALTHY, ''),
    ('no answer', HEALTHY, None, 'NoAnswer'),
    ('a member is lost', HEALTHY, status('members lost', slots={1: LOST}),
     'Degraded'),
    ('as many as may fail', HEALTHY,
     status('members lost', slots={1: LOST, 2: LOST}),
     'Degraded NoMoreMemberMayFail'),
    ('too few members', HEALTHY,
     status('members lost', state='failed', slots={1: LOST, 2: LOST, 3: LOST}),
     'Failed NoMoreMemberMayFail'),
    ('an error', HEALTHY, status(slots={1: error(100)}), 'MemberError'),
    ('an error an hour ago', HEALTHY, status(slots={1: error(3600)}), ''),
    ('a new member was not rebuilt', HEALTHY,
     status(failed_change={'message': 'slot 1: /srv/new: not rebuilt: no',
                           'time': NOW - 100}), 'ChangeFailed'),
    ('a rebuild', HEALTHY, status('members lost', rebuild=states.PROGRESS,
                                  slots={1: {'state': 'rebuilding'}}),
     'Degraded'),
    ('a widening', HEALTHY, status(reshape=states.WIDEN), ''),
    ('a widening is paused', HEALTHY,
     status(reshape=dict(states.WIDEN, state='paused')), 'ReshapePaused'),
    ('a rebuild is paused', HEALTHY,
     status('members lost', rebuild=dict(states.PROGRESS, paused=True),
            slots={1: {'state': 'rebuilding'}}), 'Degraded RebuildPaused'),
    ('a resync is paused', HEALTHY,
     status('resync running', resync=dict(states.PROGRESS, paused=True)),
     'Degraded RebuildPaused'),
    ('no space', HEALTHY, status('no space', slots={5: states.FULL}),
     'Degraded NoSpace'),
    ('stalled', HEALTHY, status('stalled', slots={1: states.SILENT}),
     'Degraded Stalled'),
    ('corruption', HEALTHY, status(slots={0: {'bad_sums': 3}}), 'Corruption'),
    ('corruption after a restart', status(slots={0: {'bad_sums': 9}}),
     status(slots={0: {'bad_sums': 3}}), 'Corruption'),
    ('corruption before a restart', status(slots={0: {'bad_sums': 9}}),
     HEALTHY, ''),
    ('corruption long ago', status(slots={0: {'bad_sums': 3}}),
     status(slots={0: {'bad_sums': 3}}), ''),
    ('wrong blocks', HEALTHY,
     status('wrong blocks', state='healthy',
            last_scrub=dict(SCRUBBED, found=12)), 'WrongBlocks'),
    ('lost rows', HEALTHY, status('blocks lost', lost_rows=2),
     'Degraded LostRows'),
    ('a slow member', HEALTHY, status(slots={0: {'slow': True}}),
     'SlowMember'),
    ('a spare waits', status(extra=[SPARE]), status(extra=[SPARE]), ''),
    ('a spare is used', status(extra=[SPARE]),
     status('members lost', slots=TARGET), 'Degraded SpareUsed'),
    ('a spare was used', status(extra=[SPARE]),
     status(slots={1: {'path': '/srv/spare'}}), 'SpareUsed'),
    ('a spare was used long ago', status(slots={1: {'path': '/srv/spare'}}),
     status(slots={1: {'path': '/srv/spare'}}), ''),
    ('a spare was taken out', status(extra=[SPARE]), HEALTHY, ''),
    ('a scrub 36 days ago', HEALTHY,
     status(last_scrub=dict(SCRUBBED, ended=NOW - 36 * DAY)), ''),
    ('a scrub 41 days ago', HEALTHY,
     status(last_scrub=dict(SCRUBBED, ended=NOW - 41 * DAY)), 'ScrubOverdue'),
    ('a scrub that was stopped', HEALTHY,
     status(last_scrub=dict(SCRUBBED, complete=False)), 'NoScrub'),
    ('no scrub since the start', HEALTHY, status(last_scrub=None), 'NoScrub'),
]


def serve(listener, answers):
    for a in answers:
        states.serve(listener, [copy.deepcopy(a)])


def read_metrics(program, path):
    r = subprocess.run([program, 'metrics', path], capture_output=True,
                       text=True, timeout=100)
    return {name: samples for name, (_, samples)
            in metrics.parse(r.stdout).items()}


def seconds(text):
    n, unit = re.fullmatch('([0-9]+)([smhd])', text).groups()
    return int(n) * {'s': 1, 'm': 60, 'h': 3600, 'd': DAY}[unit]


class Judge:
    """Says which alerts are true, and remembers for promtool."""

    def __init__(self, rules):
        self.rules = rules
        self.tests = []

    def expect(self, name, samples, before, want):
        found = {r['alert']: promql.Query(r['expr'], samples, before, NOW).run()
                 for r in self.rules}
        have = {alert for alert, result in found.items() if result}
        if have != want:
            sys.exit(f'{name}: {sorted(have)}, not {sorted(want)}')
        self.tests.append({
            'name': name, 'interval': '12h',
            'input_series': series(samples, before),
            'alert_rule_test': [
                {'alertname': alert, 'eval_time': f'{STEPS * 12}h',
                 'exp_alerts': [
                     {'exp_labels': {k: v for k, v in labels.items() if v}}
                     for labels, _ in result]}
                for alert, result in found.items()]})

    def run_promtool(self, folder):
        rules = [{'alert': r['alert'], 'expr': r['expr']} for r in self.rules]
        write_yaml(folder, 'rules.yml',
                   {'groups': [{'name': 'gpuraid', 'rules': rules}]})
        write_yaml(folder, 'test.yml',
                   {'rule_files': ['rules.yml'], 'evaluation_interval': '12h',
                    'tests': self.tests})
        r = subprocess.run(['promtool', 'test', 'rules', 'test.yml'],
                           cwd=folder, capture_output=True, text=True)
        if r.returncode:
            sys.exit(f'promtool: {r.stdout}{r.stderr}')


def series(samples, before):
    """What was before until now, and what is now."""
    def text(name, labels):
        return name + '{' + ','.join(f'{k}="{v}"' for k, v in labels) + '}'

    at = [{text(name, labels.items()): value for name, vector in s.items()
           for labels, value in vector} for s in (before, samples)]
    return [{'series': k, 'values': ' '.join((
        f'{at[0][k]}+0x{STEPS - 1}' if k in at[0] else f'_x{STEPS}',
        str(at[1].get(k, '_'))))} for k in at[0] | at[1]]


def write_yaml(folder, name, value):
    with open(os.path.join(folder, name), 'w') as f:
        yaml.safe_dump(value, f)


def main():
    program, folder = sys.argv[1:]
    with open(RULES) as f:
        rules = [r for g in yaml.safe_load(f)['groups'] for r in g['rules']]
    by_name = {r['alert']: r for r in rules}
    assert len(by_name) == len(rules), 'two have one name'
    for r in rules:
        assert r['annotations']['summary'], r
        seconds(r.get('for', '0s'))
    # After a restart nothing is known of a scrub; a month may have 35 days.
    assert seconds(by_name['GpuraidNoScrub']['for']) > 36 * DAY

    path = os.path.join(folder, 'control')
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    answers = [s for _, *pair, _ in STATES for s in pair if s]
    threading.Thread(target=serve, daemon=True,
                     args=(listener, answers)).start()
    judge = Judge(rules)
    seen = set()
    for name, _, now, want in STATES:
        before = read_metrics(program, path)
        samples = read_metrics(program, path if now else path + '-none')
        want = {'Gpuraid' + word for word in want.split()}
        judge.expect(name, samples, before, want)
        seen |= want
    for age in 10, 1000:
        samples = {'node_textfile_mtime_seconds': [
            ({'file': '/srv/gpuraid.prom'}, NOW - age),
            ({'file': '/srv/other.prom'}, NOW - 9999)]}
        judge.expect(f'metrics {age} s old', samples, {},
                     {OLD_METRICS} if age > 300 else set())
    rest = by_name.keys() - seen - {OLD_METRICS}
    assert not rest, f'in no state: {rest}'

    for text in 'rate(gpuraid_x[1d])', 'gpuraid_x > bool 1', 'a + b', '1':
        try:
            promql.Query(text, {}, {}, NOW).run()
        except AssertionError:
            continue
        sys.exit(f'{text}: is not refused')
    if shutil.which('promtool'):
        judge.run_promtool(folder)


main()
