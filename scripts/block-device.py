#!/usr/bin/python3
# block-device.py: what uses a block device; detach it once nothing does.
#
#   block-device.py users DEVICE
#   block-device.py detach [--wait S] [--pid PID] DEVICE ID
#
# users prints one line, empty if nothing is found.
#
# detach waits up to S seconds until nothing uses /dev/loopN or /dev/nbdN, and
# detaches it: exit status 0.  Status 2: something still uses it, and nothing was
# done; 1: another error.  PID is the process that keeps an nbd device attached.
# ID is what /sys/block/NAME/diskseq and pid said when it was attached: a device
# that says something else is another program's by now, and is left alone.
#
# A file system lives on where a name space has a copy of the mount, or where a
# process has a file of it open after umount -l.  No list of mounts shows all
# of that; but a device that has a file system can't be opened with O_EXCL.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import errno
import fcntl
import glob
import os
import signal
import subprocess
import sys
import time

LOOP_CLR_FD = 0x4c01            # <linux/loop.h>
DETACH_SECONDS = 30
LOOK_SECONDS = 30
MANY = 3                        # as many are named


class Error(Exception):
    pass


def read_file(name):
    try:
        with open(name, errors='surrogateescape') as f:
            return f.read()
    except OSError:
        return ''               # a process that has ended, or of another user


def read_link(name):
    try:
        return os.readlink(name)
    except OSError:
        return ''


def list_processes():
    """The oldest first: others may have got a file from it."""
    return sorted((p for p in os.listdir('/proc')
                   if p.isdigit() and int(p) != os.getpid()), key=int)


def list_files(pid):
    try:
        return [f'/proc/{pid}/fd/{fd}' for fd in os.listdir(f'/proc/{pid}/fd')]
    except OSError:
        return []


def process(pid):
    return f'process {pid} ({read_file(f"/proc/{pid}/comm").strip()})'


# ---- what uses it -----------------------------------------------------------

def find_mounts(numbers, device):
    """Where it is mounted, in any name space; one process of each is asked."""
    ours = read_link('/proc/self/ns/mnt')
    found, seen = [], set()
    for pid in ['self'] + list_processes():
        ns = read_link(f'/proc/{pid}/ns/mnt')
        if ns in seen:
            continue
        seen.add(ns)
        for line in read_file(f'/proc/{pid}/mountinfo').splitlines():
            mount, _, source = line.partition(' - ')
            fields = mount.split(' ')
            # btrfs has numbers of its own.
            if fields[2] == numbers or source.split(' ')[1] == device:
                where = f'mounted on {fields[4]}'
                if ns != ours:
                    where += f' in the name space of {process(pid)}'
                found.append(where)
    return found


def has_file(pid, number):
    """Has it a file of this file system, mounted or not?  That may hang, where
    the server of another one does: then this process ends."""
    signal.alarm(LOOK_SECONDS)
    maps = f'{os.major(number):02x}:{os.minor(number):02x}'
    if any(line.split()[3] == maps
           for line in read_file(f'/proc/{pid}/maps').splitlines()):
        return True
    for name in list_files(pid) + [f'/proc/{pid}/cwd', f'/proc/{pid}/root']:
        if not read_link(name).startswith(('/dev/', '/proc/', '/sys/')):
            try:
                if os.stat(name).st_dev == number:
                    return True
            except OSError:
                pass
    return False


def find_openers(device):
    return [pid for pid in list_processes()
            if any(read_link(f) == device for f in list_files(pid))]


def shorten(texts):
    if len(texts) > MANY:
        texts = texts[:MANY] + [f'{len(texts) - MANY} more']
    return ', '.join(texts)


def find_users(device):
    """Mounts are enough to know; to look for files takes long."""
    number = os.stat(device).st_rdev
    numbers = f'{os.major(number)}:{os.minor(number)}'
    mounts = find_mounts(numbers, device)
    if mounts:
        return shorten(mounts)
    users = ['/dev/' + os.path.basename(h) for h in
             glob.glob(f'/sys/dev/block/{numbers}/holders/*')]
    if f'\n{device} ' in read_file('/proc/swaps'):
        users.append('the kernel, as swap')
    users += [process(p) for p in find_openers(device)]
    if not users:
        users = [process(p) for p in list_processes() if has_file(p, number)]
    return 'in use by ' + shorten(users) if users else ''


# ---- detach ---------------------------------------------------------------

def read_id(device):
    sys_block = '/sys/block/' + os.path.basename(device)
    return ' '.join((read_file(sys_block + '/diskseq') +
                     read_file(sys_block + '/pid')).split())


def has_ended(pid):
    state = read_file(f'/proc/{pid}/stat').rpartition(')')[2].split()
    return not state or state[0] in 'ZX'


def end_nbd(device, pid):
    """Nothing else can mount it meanwhile."""
    if pid is None:             # the one that attached it was killed
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                              'nbd-netlink.py')
        subprocess.run([script, 'detach', device], check=True)
        return
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + DETACH_SECONDS
    while not has_ended(pid):
        if time.monotonic() > end:
            raise Error(f'{device}: process {pid} does not detach it')
        time.sleep(0.05)


def try_detach(device, ident, pid):
    try:
        fd = os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC)
    except OSError as e:
        if e.errno in (errno.EBUSY, errno.ENXIO, errno.ENOENT):
            return
        raise
    try:
        # While it is open it stays what it is.
        if read_id(device) != ident:
            return
        if os.path.basename(device).startswith('loop'):
            # If it is open elsewhere it stays until that is closed.
            fcntl.ioctl(fd, LOOP_CLR_FD)
        elif not find_openers(device):
            end_nbd(device, pid)
    finally:
        os.close(fd)


def detach(device, ident, seconds, pid):
    """Is it detached?"""
    end = time.monotonic() + seconds
    while read_id(device) == ident:
        try_detach(device, ident, pid)
        if read_id(device) == ident:
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
    return True


def main():
    parser = argparse.ArgumentParser(prog='block-device.py')
    commands = parser.add_subparsers(dest='command', required=True)
    commands.add_parser('users').add_argument('device')
    p = commands.add_parser('detach')
    p.add_argument('--wait', type=float, default=0)
    p.add_argument('--pid', type=int)
    p.add_argument('device')
    p.add_argument('id')
    args = parser.parse_args()
    try:
        if args.command == 'users':
            sys.stdout.reconfigure(errors='replace')
            print(find_users(args.device))
            return 0
        return 0 if detach(args.device, args.id, args.wait, args.pid) else 2
    except (OSError, Error, subprocess.CalledProcessError) as e:
        sys.exit(f'block-device: {e}')


if __name__ == '__main__':
    sys.exit(main())
