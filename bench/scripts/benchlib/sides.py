# sides: gpuraid and what it is compared with, each a server or a file system
# that fio can reach.
#
# A side is made with a folder of its own and opts: geometry (k, m), size in
# bytes, ring in MiB of each member (0: the default), loops (members are loop
# devices with direct I/O), unwritten (nothing is written before).
#
# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(
    __file__)), '../../..'))
sys.path.insert(0, os.path.join(ROOT, 'tests'))
os.environ.setdefault('OUT', ROOT)
from lab.array import (Array, Failure, Refused, until_up,        # noqa: E402
                       written)

MiB = 1 << 20
TITLE = dict(gpuraid='gpuraid', before='gpuraid before',
             degraded='gpuraid, m lost', journal='gpuraid, journal',
             checksums='gpuraid, journal and checksums',
             multihost='gpuraid, journal, checksums, multihost=yes',
             unhedged='gpuraid, journal, checksums, hedge=no',
             memory='nbdkit memory', file='nbdkit file',
             direct='nbdkit file cache=none', qemu='qemu-nbd',
             btrfs='btrfs raid6')


class Unavailable(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


def sh(*args, timeout=120):
    r = subprocess.run(list(map(str, args)), stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=timeout)
    if r.returncode:
        raise Unavailable('%s: %s' % (args[0], r.stdout.strip()[-300:]))
    return r.stdout.strip()


def need(*programs):
    for p in programs:
        if not shutil.which(p):
            raise Unavailable('%s is not installed' % p)


def attach(loops, folder, n, size):
    need('losetup')
    for i in range(n):
        path = os.path.join(folder, 'disk%d' % i)
        with open(path, 'wb') as f:
            f.truncate(size)
        loops.append(sh('losetup', '--direct-io=on', '-f', '--show', path))


def detach(loops):
    for dev in loops:
        subprocess.run(['losetup', '-d', dev])


class Gpuraid:
    lost = 0
    server_keys = ()
    keys = dict(consistency='none', checksum='none')

    def __init__(self, folder, opts, out=None):
        k, m = opts.geometry
        ring = opts.ring * MiB if self.keys['consistency'] != 'none' else 0
        # Room for ring and table: what is not used takes no space.
        room = -(-opts.size // (k * 65536)) * 65536
        self.array = Array(folder, k, m, size=opts.size, chunk=65536,
                           member_size=room + room // 32 + 80 * MiB + ring,
                           keys=self.server_keys, out=out or self.out(opts))
        self.loops = []
        if opts.loops:
            attach(self.loops, folder, k + m, self.array.member_size)
            self.array.member = list(self.loops)
        self.array.create(**self.keys, **({'journal-size': ring} if ring else {}))
        self.array.start()
        self.fio = nbd_flags(self.array.uri)

    def out(self, opts):
        return os.environ['OUT']

    def filled(self):
        for slot in range(self.lost):
            self.array.fail(slot)

    def close(self):
        self.array.server.kill()
        self.array.server.wait()
        detach(self.loops)


class Degraded(Gpuraid):
    def __init__(self, folder, opts):
        super().__init__(folder, opts)
        # The first ones of stripe 0: data, so that reads have to decode.
        self.lost = opts.geometry[1]


class Journal(Gpuraid):
    keys = dict(consistency='journal', checksum='none')


class Checksums(Gpuraid):
    keys = dict(consistency='journal', checksum='crc32c')


class Multihost(Checksums):
    keys = dict(Checksums.keys, multihost='yes')


class Unhedged(Checksums):
    server_keys = ('hedge=no',)


class Before(Gpuraid):
    def out(self, opts):
        return opts.before


class Nbdkit:
    def __init__(self, folder, opts):
        sock = os.path.join(folder, 'sock')
        pid = os.path.join(folder, 'pid')
        self.server = subprocess.Popen(self.command(sock, pid, folder, opts))
        try:
            until_up(type(self).__name__, self.server, lambda: written(pid))
        except Failure as e:
            raise Unavailable(e)
        self.fio = nbd_flags('nbd+unix:///?socket=' + sock)

    def command(self, sock, pid, folder, opts):
        return ['nbdkit', '-f', '-U', sock, '-P', pid,
                *self.plugin(folder, opts)]

    def filled(self):
        pass

    def close(self):
        self.server.kill()
        self.server.wait()


class Memory(Nbdkit):
    def plugin(self, folder, opts):
        return ['memory', 'size=%d' % opts.size]


class File(Nbdkit):
    def plugin(self, folder, opts):
        path = os.path.join(folder, 'disk')
        with open(path, 'wb') as f:
            f.truncate(opts.size)
        return ['file', path]


class Direct(File):
    def __init__(self, folder, opts):
        self.loops = []
        try:
            super().__init__(folder, opts)
        except Unavailable:
            detach(self.loops)
            raise

    def plugin(self, folder, opts):
        if not opts.loops:
            return super().plugin(folder, opts) + ['cache=none']
        attach(self.loops, folder, 1, opts.size)
        return ['file', self.loops[0], 'cache=none']

    def close(self):
        super().close()
        detach(self.loops)


class Qemu(Direct):
    def command(self, sock, pid, folder, opts):
        need('qemu-nbd')
        path = self.plugin(folder, opts)[1]
        return ['qemu-nbd', '-t', '-f', 'raw', '-e', '0', '-k', sock,
                '--pid-file=' + pid,
                *(['--cache=none'] if opts.loops else []), path]


class Btrfs:
    def __init__(self, folder, opts):
        need('mkfs.btrfs', 'mount')
        if os.geteuid():
            raise Unavailable('not root: no loop devices, no mount')
        k, m = opts.geometry
        if m != 2:
            raise Unavailable('raid6 has two parities, not %d' % m)
        self.loops, self.mnt = [], os.path.join(folder, 'mnt')
        self.mounted = False
        os.mkdir(self.mnt)
        try:
            attach(self.loops, folder, k + m, opts.size // k + 1024 * MiB)
            sh('mkfs.btrfs', '-q', '-f', '-d', 'raid6', '-m', 'raid1c3',
               *self.loops)
            sh('mount', '-t', 'btrfs', self.loops[0], self.mnt)
            self.mounted = True
        except Unavailable:
            self.close()
            raise
        self.fio = ['--ioengine=libaio', '--direct=1',
                    '--filename=' + os.path.join(self.mnt, 'disk')]

    def filled(self):
        sh('sync', '-f', self.mnt)

    def close(self):
        if self.mounted:
            subprocess.run(['umount', self.mnt])
        detach(self.loops)


SIDES = dict(gpuraid=Gpuraid, before=Before, degraded=Degraded,
             journal=Journal, checksums=Checksums,
             multihost=Multihost, unhedged=Unhedged, memory=Memory,
             file=File, direct=Direct, qemu=Qemu, btrfs=Btrfs)


def nbd_flags(uri):
    return ['--ioengine=nbd', '--uri=' + uri]


def fio(side, opts, rw, bs, jobs, seconds=None):
    depth = 8 if bs == '1M' else 16
    cmd = ['fio', '--name=x', *side.fio, '--rw=' + rw, '--bs=' + bs,
           '--size=%d' % opts.size, '--iodepth=%d' % depth,
           '--numjobs=%d' % jobs, '--group_reporting', '--norandommap',
           '--randrepeat=0', '--output-format=json']
    if seconds:
        cmd += ['--time_based', '--runtime=%dms' % (1000 * seconds)]
    if 'write' in rw:
        cmd += ['--end_fsync=1']
    if jobs > 1 and not rw.startswith('rand'):
        # Each its own part, like separate clients.
        part = opts.size // jobs // MiB * MiB
        cmd += ['--size=%d' % part, '--offset_increment=%d' % part]
    r = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=(seconds or 0) + 300)
    if r.returncode:
        raise Failure('%s: %s' % (shlex.join(cmd), r.stderr or r.stdout))
    out = r.stdout[r.stdout.index('{'):]
    job = json.loads(out)['jobs'][0]
    return job['write' if 'write' in rw else 'read']


def title(side):
    kind, _, out = side.partition('@')
    return TITLE[kind] + (', ' + os.path.basename(out) if out else '')


def set_up(opts, parent):
    sides, left_out = {}, []
    for name in opts.sides:
        folder = os.path.join(parent, 'side%d' % len(os.listdir(parent)))
        os.mkdir(folder)
        kind, _, out = name.partition('@')
        try:
            sides[name] = SIDES[kind](folder, opts, out) if out else \
                SIDES[kind](folder, opts)
        except (Unavailable, Refused) as e:
            left_out.append('%s is left out: %s' % (title(name), e))
            say(left_out[-1])
            continue
        if not opts.unwritten:
            fio(sides[name], opts, 'write', '1M', 1)
        sides[name].filled()
    return sides, left_out


def cpu_seconds(side):
    """Of its server so far, all threads."""
    server = side.array.server if hasattr(side, 'array') else side.server
    with open('/proc/%d/stat' % server.pid) as f:
        fields = f.read().rpartition(')')[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf('SC_CLK_TCK')


def machine():
    model = next((line.split(':', 1)[1].strip() for line in
                  open('/proc/cpuinfo') if line.startswith('model name')),
                 platform.machine())
    memory = next(int(line.split()[1]) // MiB for line in
                  open('/proc/meminfo') if line.startswith('MemTotal'))
    versions = [subprocess.run([p, '--version'], stdout=subprocess.PIPE,
                               text=True).stdout.split('\n')[0]
                for p in ('nbdkit', 'fio')]
    rev = subprocess.run(['git', '-C', ROOT, 'describe', '--always',
                          '--dirty'], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True).stdout.strip()
    return '%d x %s, %d GiB, Linux %s; %s; gpuraid %s' % (
        os.cpu_count(), model, memory, platform.release(),
        ', '.join(versions), rev or 'of unknown revision')
