"""gpuraid: what is kept when content is wrong, to tell whose fault it is.

The last requests of the block with their times and answers, every member's
bytes of its row, what a second read gives, the files of the array, the ends of
the servers' logs and the kernel's last lines.  All of it goes into a folder
that stays, of which the newest few are left, and what fits on a screen is
printed.  Nothing here raises: the failure itself must be reported.

SPDX-License-Identifier: BSD-3-Clause
"""

import collections
import contextlib
import errno
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

from . import gf

BLOCK, SECTOR = 4096, 512
REQUESTS = 16           # the last ones of each block
EVENTS = 1000           # flushes, and what concerns all blocks
FOLDERS = 5             # that stay
MOST = 100 << 20        # bytes of files in one
PATIENCE = 20           # seconds for a read from what may hang

READ = '''
import os, sys
path, off, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if path.startswith('nbd'):
    import nbd
    h = nbd.NBD()
    h.set_uri_allow_local_file(True)
    h.connect_uri(path)
    data = bytes(h.pread(length, off))
else:
    data = os.pread(os.open(path, os.O_RDONLY), length, off)
sys.stdout.buffer.write(data)
'''


class Note:
    """Something that concerns all blocks; like a workload's Op."""

    def __init__(self, kind):
        self.kind, self.start = kind, time.monotonic()
        self.end = self.err = None


class History:
    """The last requests of each block.  A request has kind, b0 and nr (blocks),
    gen, fua, on (its connection), start, end, err: see workload.Op."""

    def __init__(self):
        self.began = time.monotonic()
        self.blocks = {}
        self.all = collections.deque(maxlen=EVENTS)

    def add(self, op):
        if op.kind == 'flush':
            self.all.append(op)
            return
        for b in range(op.b0, op.b0 + op.nr):
            ops = self.blocks.setdefault(b, [])
            if op.kind == 'read' and len(ops) > 1 and all(
                    o.kind == 'read' and o.err == 0 for o in ops[-2:]):
                del ops[-2]
            elif len(ops) == REQUESTS:
                del ops[0]
            ops.append(op)

    def event(self, what):
        note = Note(what)
        note.end, note.err = note.start, 0
        self.all.append(note)

    @contextlib.contextmanager
    def during(self, what):
        note = Note(what)
        self.all.append(note)
        yield
        note.end, note.err = time.monotonic(), 0

    def lines(self, blocks):
        """Of these: their requests, for each the first good flush that began
        after it, and what concerned all blocks."""
        ops = {id(o): o for b in blocks for o in self.blocks.get(b, ())}
        if not ops:
            return ['no requests']
        ops = list(ops.values())
        first = min(o.start for o in ops)
        for o in ops[:]:
            ops += itertools.islice(
                (f for f in list(self.all) if f.kind == 'flush' and f.err == 0
                 and o.kind != 'read' and o.end and f.start > o.end), 1)
        ops += [e for e in self.all if isinstance(e, Note)
                and (e.end or e.start) >= first]
        return [self._line(o) for o in sorted(
            {id(o): o for o in ops}.values(), key=lambda o: o.start)]

    def _line(self, o):
        text = '%9.4f to %s s  %s' % (
            o.start - self.began,
            '%9.4f' % (o.end - self.began) if o.end else '        -', o.kind)
        if not isinstance(o, Note) and o.kind != 'flush':
            text += ' of %d to %d' % (o.b0, o.b0 + o.nr - 1)
            if o.kind != 'read':
                text += ', generation %s' % o.gen
        if not isinstance(o, Note):
            text += ', connection %s%s' % (o.on, ', FUA' if o.fua else '')
        return text + (': not answered' if o.end is None else '' if not o.err
                       else ': %s' % errno.errorcode.get(o.err, o.err))


def read(path, off, length=BLOCK):
    """By a process of its own, since it may hang.  The bytes, or why not."""
    try:
        r = subprocess.run([sys.executable, '-c', READ, path, str(off),
                            str(length)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return 'not answered within %d s' % PATIENCE
    if r.returncode:
        return (r.stderr.decode(errors='replace').splitlines() or ['?'])[-1]
    return r.stdout


def name_sectors(data, name):
    """Runs of sectors with the same name."""
    if isinstance(data, str):
        return data
    names = [name(s, data[s * SECTOR:(s + 1) * SECTOR])
             for s in range(len(data) // SECTOR)]
    words, first = [], 0
    for word, run in itertools.groupby(names):
        nr = len(list(run))
        words.append('sectors %d to %d: %s' % (first, first + nr - 1, word))
        first += nr
    return '; '.join(words) or 'nothing'


class Row:
    """The blocks of all slots that are coded together with that byte of the
    export.  name (off, bytes) says what a sector there is; versions: name ->
    bytes that its block had."""

    def __init__(self, array, off, name, versions):
        self.array, self.name, self.versions = array, name, versions
        self.stripe, rest = divmod(off, array.k * array.chunk)
        self.role, at = divmod(rest, array.chunk)
        self.at = at // BLOCK * BLOCK
        self.on_member = array.data_off + self.stripe * array.chunk + self.at
        self.data = {}          # (role, how it was read) -> bytes, or why not
        for role in range(array.n):
            path = array.member[self.slot(role)]
            behind = array.file_of.get(path)
            self.data[role, ''] = read(path, self.on_member)
            if behind:
                self.data[role, 'durable'] = read(behind, self.on_member)

    def slot(self, role):
        return self.array.slot_of(self.stripe, role)

    def keep(self, folder):
        for (role, how), data in self.data.items():
            if not isinstance(data, str):
                path = os.path.join(folder, 'row-slot-%02d%s' % (
                    self.slot(role), '-' + how if how else ''))
                with open(path, 'wb') as f:
                    f.write(data)

    def lines(self, states):
        a = self.array
        yield 'stripe %d, role %d, byte %d of each member:' % (
            self.stripe, self.role, self.on_member)
        for (role, how), data in self.data.items():
            if how and data == self.data[role, '']:
                continue
            slot = self.slot(role)
            if role < a.k:
                first = (self.stripe * a.k + role) * a.chunk + self.at
                words = name_sectors(data, lambda s, part: self.name(
                    first + s * SECTOR, part))
            else:
                words = self._parity(role - a.k, how, data)
            yield '  slot %d (%s)%s, %s: %s' % (
                slot, states[slot], ', ' + how if how else '',
                'role %d' % role if role < a.k else 'parity %d' % (
                    role - a.k), words)

    def _parity(self, j, how, got):
        """What its sectors fit: what the others hold, or that with another
        version of the block."""
        a = self.array
        data = [self.data.get((r, how), self.data[r, ''])
                for r in range(a.k)]
        tries = {'fits the data': data}
        for word, content in self.versions.items():
            tries['fits with ' + word] = [*data[:self.role], content,
                                          *data[self.role + 1:]]
        fits = {word: gf.parity_of(a.code, a.w, a.m, d)[j]
                for word, d in tries.items()
                if all(len(x) == BLOCK and not isinstance(x, str)
                       for x in d)}

        def name(s, part):
            at = slice(s * SECTOR, (s + 1) * SECTOR)
            return next((w for w, p in fits.items() if p[at] == part),
                        'zeroes' if not part.strip(b'\0') else 'fits nothing')
        return name_sectors(got, name)


def new_folder(name):
    base = os.environ.get('B') or 'build'
    base = os.path.join(os.path.realpath(base), 'kept') \
        if os.path.isdir(base) else tempfile.gettempdir()
    os.makedirs(base, exist_ok=True)
    mine = tempfile.mkdtemp(prefix='kept-%s-' % name, dir=base)
    with contextlib.suppress(OSError):
        others = sorted((e for e in os.scandir(base)
                         if e.name.startswith('kept-')),
                        key=lambda e: e.stat().st_mtime)
        for e in others[:-FOLDERS]:
            shutil.rmtree(e.path, ignore_errors=True)
    return mine


def copy_files(folder, to):
    """Small ones first, up to MOST bytes in all; not what is mounted there.
    What was left out."""
    files, here = [], os.stat(folder).st_dev
    for d, names, inside in os.walk(folder):
        names[:] = [n for n in names if not os.path.islink(
            os.path.join(d, n)) and not is_mounted(os.path.join(d, n), here)]
        for n in inside:
            path = os.path.join(d, n)
            if os.path.isfile(path) and not os.path.islink(path):
                files.append((os.stat(path).st_blocks * 512, path))
    left = MOST
    for used, path in sorted(files):
        left -= used
        if left < 0:
            yield '%s is not kept: too large' % path
            continue
        at = os.path.join(to, os.path.relpath(path, folder))
        os.makedirs(os.path.dirname(at), exist_ok=True)
        subprocess.run(['cp', '--sparse=always', path, at], timeout=60,
                       stderr=subprocess.DEVNULL)


def is_mounted(path, dev):
    """Without asking the file system there, which may hang."""
    with open('/proc/self/mountinfo') as f:
        if any(line.split()[4] == path for line in f):
            return True
    return os.stat(path).st_dev != dev


def ends_of_logs(folder, array_log):
    """Of each file of the folder that is called log, or ends so."""
    logs = [os.path.join(d, n) for d, _, names in os.walk(folder)
            for n in names if n.endswith('log')]
    for path in sorted(logs, key=lambda p: p == array_log)[-6:]:
        with open(path, errors='replace') as f:
            text = f.read()[-20000:].splitlines()
        if text:
            yield 'the end of %s:' % os.path.relpath(path, folder)
            yield from ('  ' + line[:300] for line in
                        text[-10 if path == array_log else -3:])


def kernel_lines(nr):
    r = subprocess.run(['dmesg'], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=PATIENCE)
    return r.stdout.splitlines()[-nr:]


class Keeper:
    """Collects lines, one part after the other, of which any may fail."""

    def __init__(self, name):
        self.folder = new_folder(name)
        self.lines = []

    def part(self, call, *args):
        try:
            self.lines += call(*args) or ()
        except Exception:
            self.lines.append('this is missing: ' + traceback.format_exc())

    def put(self, name, text):
        with open(os.path.join(self.folder, name), 'w') as f:
            f.write(text)


def keep(name, folder, array=None, said=(), wrong=None, history=None):
    """folder: of the array, which the caller removes later.  said: what was
    done.  wrong: None, or where content is wrong: an object with off (a byte of
    the export), blocks (of the history), unit (their bytes), words (what the
    model says), got (bytes that were read), name and versions (see Row).
    The folder that stays, and lines to print."""
    k = Keeper(name)
    k.part(ends_of_logs, folder, array and array.log)
    k.part(lambda: ['the kernel:', *('  ' + x for x in kernel_lines(5))])
    k.part(lambda: k.put('dmesg', '\n'.join(kernel_lines(500)) + '\n'))
    k.part(lambda: k.put('said', '\n'.join(said) + '\n'))
    k.part(copy_files, folder, k.folder)
    if wrong:
        k.part(about_content, k, array, wrong, history)
    k.put('report', '\n'.join(k.lines) + '\n')
    return k.folder, k.lines


def about_content(k, array, wrong, history):
    first = wrong.off // BLOCK * BLOCK
    with open(os.path.join(k.folder, 'got'), 'wb') as f:
        f.write(wrong.got)
    states = ['?'] * array.n
    with contextlib.suppress(Exception):
        states = array.states()
    k.part(lambda: row_lines(k, array, wrong, states))
    k.part(lambda: ['read again: ' + name_sectors(
        read(array.uri, first), lambda s, part: wrong.name(
            first + s * SECTOR, part))])
    k.lines += ['the model: ' + wrong.words]
    if history:
        k.part(lambda: ['requests:', *(
            '  ' + line for line in history.lines(wrong.blocks)[-30:])])
        k.put('requests', '\n'.join(history.lines(
            row_blocks(array, wrong))) + '\n')


def row_blocks(array, wrong):
    """All blocks that are coded together with these."""
    chunk = array.chunk // wrong.unit
    stripe = wrong.blocks[0] // (array.k * chunk) * array.k * chunk
    at = wrong.blocks[0] % chunk
    return [stripe + role * chunk + at + i for role in range(array.k)
            for i in range(len(wrong.blocks))]


def row_lines(k, array, wrong, states):
    row = Row(array, wrong.off, wrong.name, wrong.versions)
    row.keep(k.folder)
    return list(row.lines(states))
