#!/usr/bin/python3
# compare: md and gpuraid on equal members, in one kernel.
#
#   bench/scripts/bench-vm        runs this in a guest
#
#   compare.py [--seconds S] [--rounds N] [--json FILE] ARRAY...
#
# Each ARRAY is 4+2 with chunks of 64 KiB on six disks in memory:
#
#   md          RAID-6 of the kernel, with its bitmap
#   md-nbd      the same behind nbdkit's plugin file and the nbd driver, as the
#               two that follow are
#   none        gpuraid, consistency=none checksum=none
#   default     gpuraid, with journal and checksums
#
# Each is written once in full, then loaded: whole, with two members out, and
# while it is whole again.  A table in Markdown goes to stdout.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
OUT = os.path.realpath(os.environ.get('OUT', TOP))
GPURAID = os.path.join(OUT, 'gpuraid')
K, M = 4, 2
os.environ['MDADM_NO_UDEV'] = '1'

# Name, what fio does, and what is counted.
LOADS = (
    ('sequential write, 1 MiB', dict(rw='write', bs='1m', iodepth=8)),
    ('sequential read, 1 MiB', dict(rw='read', bs='1m', iodepth=8)),
    ('random write, 4 KiB', dict(rw='randwrite', bs='4k', iodepth=32)),
    ('random read, 4 KiB', dict(rw='randread', bs='4k', iodepth=32)),
    ('random write, 4 KiB, each flushed',
     dict(rw='randwrite', bs='4k', iodepth=1, fsync=1)),
)


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True,
                          text=True)
    if done.returncode:
        sys.exit(f'compare: {" ".join(map(str, command))}: '
                 + (done.stderr or done.stdout).strip())
    return done.stdout


def wait_until(ready, seconds=120):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            sys.exit('compare: waited too long')
        time.sleep(0.1)


class Md:
    def __init__(self, members, spares, folder):
        self.members, self.spares = list(members), list(spares)
        self.failed = []

    def start(self):
        run('mdadm', '--create', '/dev/md0', '--run', '--quiet', '--level=6',
            f'--raid-devices={K + M}', '--chunk=64', '--bitmap=internal',
            '--assume-clean', '--force', *self.members)
        self.device = '/dev/md0'

    def fail(self, slot):
        run('mdadm', '--quiet', '/dev/md0', '--fail', self.members[slot])
        run('mdadm', '--quiet', '/dev/md0', '--remove', self.members[slot])
        self.failed.append(slot)

    def rebuild(self):
        # Not held back, as with gpuraid on an idle array.
        with open('/proc/sys/dev/raid/speed_limit_min', 'w') as f:
            f.write('100000000')
        with open('/proc/sys/dev/raid/speed_limit_max', 'w') as f:
            f.write('100000000')
        run('mdadm', '--quiet', '/dev/md0', '--add',
            *self.spares[:len(self.failed)])
        wait_until(self.is_whole, 600)

    def is_whole(self):
        with open('/sys/block/md0/md/degraded') as f, \
             open('/sys/block/md0/md/sync_action') as g:
            return f.read().strip() == '0' and g.read().strip() == 'idle'

    def stop(self):
        run('mdadm', '--quiet', '--stop', '/dev/md0')
        run('mdadm', '--zero-superblock', *self.members, *self.spares)


class Nbd:
    """What serves and attaches; the device of one is another's member."""

    def serve(self, folder, *arguments):
        self.socket = os.path.join(folder, 'sock')
        self.pid = os.path.join(folder, 'pid')
        self.server = subprocess.Popen(
            ['nbdkit', '-f', '-U', self.socket, '-P', self.pid,
             *map(str, arguments)])
        wait_until(lambda: os.path.exists(self.pid))
        self.device = subprocess.run(
            [GPURAID, 'attach', self.socket],
            stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def end(self):
        run(GPURAID, 'detach', '--wait', '60', self.device)
        self.server.terminate()
        self.server.wait()
        os.unlink(self.pid)


class MdNbd(Md, Nbd):
    def __init__(self, members, spares, folder):
        super().__init__(members, spares, folder)
        self.folder = folder

    def start(self):
        super().start()
        self.serve(self.folder, 'file', '/dev/md0')

    def stop(self):
        self.end()
        super().stop()


class Gpuraid(Nbd):
    keys = ()

    def __init__(self, members, spares, folder):
        self.members, self.spares = list(members), list(spares)
        self.folder = folder
        self.control = os.path.join(folder, 'control')
        self.failed = []

    def command(self, *arguments):
        return run(os.path.join(OUT, 'gpuraid'), *arguments)

    def start(self):
        self.command('create', '--force', f'k={K}', f'm={M}', *self.keys,
                     *self.members)
        self.serve(self.folder,
                   os.path.join(OUT, 'nbdkit-gpuraid-plugin.so'),
                   f'control={self.control}', *self.members)

    def fail(self, slot):
        self.command('fail', self.control, slot)
        self.failed.append(slot)

    def rebuild(self):
        for slot, new in zip(self.failed, self.spares):
            self.command('replace', '--force', self.control, slot, new)
        self.command('wait', self.control)

    def stop(self):
        self.end()


class GpuraidNone(Gpuraid):
    keys = ('consistency=none', 'checksum=none')


ARRAYS = {'md': Md, 'md-nbd': MdNbd, 'none': GpuraidNone, 'default': Gpuraid}


def load(device, seconds, options):
    command = ['fio', '--name=x', f'--filename={device}', '--direct=1',
               '--ioengine=io_uring', '--time_based', '--randrepeat=1',
               f'--runtime={seconds}', '--output-format=json']
    command += [f'--{key}={value}' for key, value in options.items()]
    job = json.loads(run(*command))['jobs'][0]
    kind = 'write' if 'write' in options['rw'] else 'read'
    return {'bytes_per_second': job[kind]['bw_bytes'],
            'p99_ms': job[kind]['clat_ns']['percentile']['99.000000'] / 1e6}


def measure(kind, members, spares, seconds):
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        array = ARRAYS[kind](members, spares, folder)
        array.start()
        with contextlib.ExitStack() as stack:
            stack.callback(array.stop)
            run('fio', '--name=fill', f'--filename={array.device}',
                '--rw=write', '--bs=1m', '--direct=1')
            for state in 'whole', 'two members out':
                if state != 'whole':
                    array.fail(0)
                    array.fail(3)
                for name, options in LOADS:
                    results[f'{name}, {state}'] = load(array.device, seconds,
                                                       options)
            start = time.monotonic()
            array.rebuild()
            results['rebuild of both'] = {
                'seconds': time.monotonic() - start}
    return results


def cell(results, reference):
    if 'seconds' in results:
        return f'{results["seconds"]:.1f} s'
    rate = results['bytes_per_second']
    text = f'{rate / 1e6:.1f}'
    if reference is not results:
        text += f' ({rate / reference["bytes_per_second"]:.2f})'
    return text


def main():
    parser = argparse.ArgumentParser(prog='compare.py')
    parser.add_argument('--seconds', type=float, default=5)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--json')
    parser.add_argument('arrays', nargs='*', metavar='ARRAY')
    args = parser.parse_args()
    kinds = args.arrays or ['md-nbd', 'md', 'none', 'default']
    for kind in kinds:
        if kind not in ARRAYS:
            parser.error(f'{kind}: not one of {", ".join(ARRAYS)}')

    disks = [f'/dev/ram{i}' for i in range(K + 2 * M)]
    all_results = {kind: [] for kind in kinds}
    for r in range(args.rounds):
        for kind in kinds:
            print(f'round {r + 1} of {args.rounds}: {kind}', file=sys.stderr)
            all_results[kind].append(measure(kind, disks[:K + M],
                                             disks[K + M:], args.seconds))
    if args.json:
        with open(args.json, 'w') as f:
            json.dump(all_results, f, indent=1)

    # The middle of the rounds.
    middle = {}
    for kind, rounds in all_results.items():
        middle[kind] = {}
        for name in rounds[0]:
            values = sorted((r[name] for r in rounds),
                            key=lambda v: list(v.values())[0])
            middle[kind][name] = values[len(values) // 2]
    print('| MB/s (of ' + kinds[0] + ') | ' + ' | '.join(kinds) + ' |')
    print('|---' * (len(kinds) + 1) + '|')
    for name in middle[kinds[0]]:
        cells = [cell(middle[kind][name], middle[kinds[0]][name])
                 for kind in kinds]
        print(f'| {name} | ' + ' | '.join(cells) + ' |')


if __name__ == '__main__':
    main()
