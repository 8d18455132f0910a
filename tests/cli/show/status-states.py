# status-states.py: what gpuraid status prints in each state, for
# test-status-states.sh.
#
#   status-states.py GPURAID FOLDER
#
# A server of its own, in FOLDER, answers with these states.
#
# SPDX-License-Identifier: BSD-3-Clause

import copy
import json
import os
import socket
import subprocess
import sys
import threading

AT = 1767225600                         # 2026-01-01, UTC
PROGRESS = {'done': 25 << 20, 'total': 100 << 20, 'bytes_per_second': 1 << 20,
            'eta_seconds': 75, 'paused': False}
SCRUB = {'repair': False, 'found': 0, 'repaired': 0, 'unlocated_rows': 0,
         'lost_rows': 0, 'skipped_rows': 0}
WIDEN = dict({'kind': 'widen', 'k': 4, 'm': 2, 'state': 'moving',
              'why': None}, **PROGRESS)
del WIDEN['paused']
PARITY = dict(WIDEN, kind='parity')
LAST = dict(SCRUB, ended=AT, complete=True)


def member(slot, **more):
    return dict({'slot': slot, 'path': f'/srv/disk{slot}', 'state': 'active',
                 'uuid': f'00000000-0000-0000-0000-00000000000{slot}',
                 'errors': 0}, **more)


def status(*reasons, state='', slots={}, extra=(), **more):
    return dict({
        'state': state or ('degraded' if reasons else 'healthy'),
        'reasons': list(reasons), 'writable': True, 'recovering': False,
        'k': 4, 'm': 2, 'chunk': 65536, 'size': 400 << 20, 'code': 'rs',
        'uuid': 'f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff', 'label': 'tank',
        'epoch': 7, 'coder': 'isal', 'loop': 'io_uring',
        'members': [member(i, **slots.get(i, {})) for i in range(6)] +
        list(extra),
        'rebuild': None, 'resync': None, 'grow': None, 'reshape': None,
        'scrub': None,
    }, **more)


LOST = {'state': 'failed', 'errors': 3, 'last_error': {
    'errno': 5, 'message': 'Input/output error', 'operation': 'write',
    'offset': 8192, 'time': AT}}
GONE = {'state': 'missing', 'path': None}
SILENT = {'no_answer': True, 'no_answer_seconds': 12}
FULL = {'no_space': True, 'no_space_seconds': 8}
AWAY = {'no_connection': True}

STATES = [
    ('healthy', status()),
    ('not written to yet', status(writable=False)),
    ('read-only', status(writable=False, read_only='nbdkit -r')),
    ('a scrub found nothing', status(last_scrub=LAST)),
    ('a scrub runs', status(scrub=dict(PROGRESS, **SCRUB, interrupted=False))),
    ('a member is lost', status('members lost', slots={1: LOST})),
    ('as many as may fail', status('members lost', slots={1: LOST, 3: GONE})),
    ('a rebuild', status('members lost', slots={1: {'state': 'rebuilding'}},
                         rebuild=PROGRESS)),
    ('a rebuild has begun, slowly',
     status('members lost', slots={1: {'state': 'rebuilding'}},
            rebuild=dict(PROGRESS, done=12 << 10, bytes_per_second=1 << 10,
                         eta_seconds=102388))),
    ('a rebuild is paused',
     status('members lost', slots={1: {'state': 'rebuilding'}},
            rebuild=dict(PROGRESS, paused=True))),
    ('a replacement failed',
     status(failed_change={'time': AT, 'message': 'slot 1: /srv/new: write: '
                           'Input/output error'})),
    ('a spare is not there',
     status(extra=[dict(member(7), slot=None, path=None, state='missing')])),
    ('too few members', status('members lost', state='failed',
                               slots={1: LOST, 3: GONE, 4: LOST})),
    ('it has failed', status(state='failed')),
    ('a member does not answer', status('stalled', slots={1: SILENT})),
    ('more than may fail do not answer',
     status('stalled', slots={1: SILENT, 2: SILENT, 4: SILENT})),
    ('a server of a member is away',
     status('stalled', slots={2: dict(SILENT, **AWAY)})),
    ('no space', status('no space', slots={5: FULL})),
    ('no space, and the recovery waits',
     status('no space', slots={5: FULL}, recovering=True)),
    ('a slow member', status(slots={0: {'slow': True}})),
    ('a deleted file', status(slots={0: {'deleted': True}})),
    ('bad checksums', status(slots={0: {'bad_sums': 21}})),
    ('wrong blocks', status('wrong blocks', state='healthy',
                            last_scrub=dict(LAST, found=12))),
    ('lost rows', status('blocks lost', lost_rows=2)),
    ('a resync waits', status('resync pending', writable=False)),
    ('a resync', status('resync running', resync=PROGRESS)),
    ('a widening', status(reshape=WIDEN)),
    ('a widening is paused', status(reshape=dict(WIDEN, state='paused'))),
    ('a widening waits',
     status('members lost', slots={1: LOST}, reshape=dict(
         WIDEN, state='waiting', why='a slot has no active member: replace '
         'it, or take it again'))),
    ('a widening stopped',
     status('blocks lost', lost_rows=1, reshape=dict(
         WIDEN, state='stopped', why='too little of a row can be read: it '
         'goes on when that is written'))),
    ('a widening ends', status(reshape=dict(WIDEN, done=100 << 20,
                                            state='finishing'))),
    ('added parity is filled', status(reshape=PARITY, rebuild=PROGRESS)),
    ('added parity waits',
     status(reshape=dict(PARITY, state='waiting', why='for the first '
                         'connection that may write'))),
    ('a coder failed',
     status(engines=[{'name': 'cuda', 'jobs': 5, 'bytes': 4096,
                      'failed': 'the device was lost'}])),
    ('room', status(growable=1 << 30, rate_limit=1 << 20)),
]


def serve(listener, answers):
    for a in answers:
        c, _ = listener.accept()
        c.makefile().readline()
        c.sendall(json.dumps({'ok': True, 'status': a}).encode() + b'\n')
        c.close()


def main():
    program, folder = sys.argv[1:]
    path = os.path.join(folder, 'control')
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(8)
    threading.Thread(target=serve, daemon=True,
                     args=(listener, [copy.deepcopy(s) for _, s in STATES])
                     ).start()
    for name, _ in STATES:
        r = subprocess.run([program, 'status', path], capture_output=True,
                           text=True, timeout=100)
        if r.stderr:
            sys.exit(f'{name}: {r.stderr}')
        # What it counts is the same in all of them.
        text = r.stdout[:r.stdout.index('\n  since start')]
        print(f'=== {name}: exit status {r.returncode}\n{text}')


if __name__ == '__main__':
    main()
