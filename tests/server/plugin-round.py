#!/usr/bin/python3
"""gpuraid: once round the life of an array, with the keys that are given.

usage: tests/server/plugin-round.py FOLDER [-D FLAG]... [KEY=VALUE]...

In FOLDER, a tmpfs: create, copy random bytes in, read them back, lose m
members in the middle of more writes, read back, rebuild, read back, start
again, read back, and look at every stripe on the members.  Then one more
parity member, while all is written again, and once more with one more lost.
Prints what the server said and what its status was.  Exit status 0 if every
byte was right.

SPDX-License-Identifier: BSD-3-Clause
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)),
                                '..'))
from lab.array import Array, Failure, Refused, end_cleanly   # noqa: E402

MiB = 1 << 20


def copy(*args):
    subprocess.run(['nbdcopy', '--connections=4', *args], check=True,
                   timeout=120)


class Round:
    def __init__(self, folder, flags, keys):
        self.array = Array(folder, 10, 4, size=320 * MiB,
                           code=keys.pop('code', 'rs'))
        self.array.create()
        self.flags, self.keys = flags, keys
        self.data = os.path.join(folder, 'data')
        self.fill(1)

    def fill(self, seed):
        self.sum = hashlib.sha256()
        with open('/dev/urandom', 'rb') as src, open(self.data, 'wb') as dst:
            for _ in range(self.array.size // MiB):
                block = src.read(MiB)
                dst.write(block)
                self.sum.update(block)
            rest = src.read(self.array.size % MiB)
            dst.write(rest)
            self.sum.update(rest)

    def start(self):
        self.array.start(flags=self.flags, **self.keys)
        print(self.array.words)

    def write(self):
        began = time.monotonic()
        copy('--flush', self.data, self.array.uri)
        print('wrote %d MiB in %.2f s' % (self.array.size // MiB,
                                          time.monotonic() - began))

    def check(self, what):
        began = time.monotonic()
        r = subprocess.Popen(['nbdcopy', '--connections=1', '--synchronous',
                              self.array.uri, '-'], stdout=subprocess.PIPE)
        got = hashlib.sha256()
        while block := r.stdout.read(4 * MiB):
            got.update(block)
        if r.wait() != 0 or got.digest() != self.sum.digest():
            raise Failure('wrong bytes when ' + what)
        print('right when %s, %.2f s' % (what, time.monotonic() - began))

    def while_writing(self, act, *args):
        writer = threading.Thread(target=self.write)
        writer.start()
        for arg in args:
            time.sleep(0.05)
            act(arg)
        writer.join()

    def lose_and_rebuild(self, seed, *slots):
        self.fill(seed)
        self.while_writing(self.array.fail, *slots)
        self.check('%d members are lost' % len(slots))
        self.status()
        for slot in slots:
            self.array.replace(slot, force=True)
        self.array.wait_healthy()
        self.check('rebuilt')
        self.status()

    def add_parity(self, new):
        a = self.array
        a.gpuraid('add-parity', a.control, new)
        a.member.append(new)
        a.m += 1
        a.n += 1

    def status(self):
        s = self.array.status()
        print('status', json.dumps(s['engines']))

    def run(self):
        self.start()
        self.write()
        self.check('healthy')
        self.lose_and_rebuild(2, 0, 3, 10, 13)
        print(self.array.last_words())
        self.array.stop()
        self.array.audit()
        self.start()
        self.check('started again')
        self.fill(3)
        self.while_writing(self.add_parity, self.array.new_path())
        self.array.wait_healthy()
        self.check('parity is added')
        self.lose_and_rebuild(4, 0, 3, 5, 10, 13)
        self.array.stop()


def main():
    end_cleanly()
    args = sys.argv[1:]
    if not args:
        sys.exit(__doc__.split('\n')[2])
    flags, keys = [], {}
    rest = iter(args[1:])
    for a in rest:
        if a == '-D':
            flags += ['-D', next(rest)]
        else:
            key, value = a.split('=', 1)
            keys[key] = value
    with tempfile.TemporaryDirectory(dir=args[0]) as folder:
        r = Round(folder, flags, keys)
        try:
            r.run()
        finally:
            r.array.kill()


if __name__ == '__main__':
    try:
        main()
    except (Failure, Refused, subprocess.CalledProcessError) as e:
        sys.exit('plugin-round: %s' % e)
