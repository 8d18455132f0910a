#!/usr/bin/python3
# watch.py: gpuraid watch on terminals of several sizes, for test-watch.sh.
#
#   tests/cli/show/watch.py GPURAID FOLDER [CONTROL]
#   tests/cli/show/watch.py --record GPURAID FOLDER
#
# Without CONTROL it watches a server of its own, made here, whose status can
# be anything; the socket is in FOLDER.  watch-frames-*.txt have whole
# screens, as they must be: --record writes them anew, to be read before they
# are committed.
#
# SPDX-License-Identifier: BSD-3-Clause

import codecs
import copy
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

from terminal import Terminal

ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J'
LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
COLOUR = re.compile('\x1b\\[[0-9;]*m')
PATIENCE = 120          # seconds without anything from it
MANY = 20               # frames, of which one must be as it is wanted
LATE = 75               # the exit status, see scripts/run-tests


def late(why):
    print(f'{sys.argv[0]}: {why}', file=sys.stderr)
    sys.exit(LATE)


def member(slot, **more):
    return dict({
        'slot': slot, 'path': f'/srv/disks/rack-1/shelf-2/disk-{slot}.img',
        'state': 'active', 'errors': 0, 'bad_sums': 0, 'no_space': False,
        'slow': False, 'read_ops': 0, 'read_bytes': 0, 'read_ns': 0,
        'write_ops': 0, 'write_bytes': 0, 'write_ns': 0, 'flush_ops': 0,
        'flush_ns': 0}, **more)


def status(k, m, **more):
    return dict({
        'state': 'healthy', 'k': k, 'm': m, 'size': 4 << 40,
        'uuid': '00112233-4455-6677-8899-aabbccddeeff', 'label': 'tank',
        'read_only': None, 'engines': [], 'lost_rows': 0,
        'members': [member(i) for i in range(k + m)],
        'rebuild': None, 'resync': None, 'scrub': None,
        'cache': {'size': 256 << 20, 'used': 1 << 20, 'dirty': 0},
        'counters': {}}, **more)


class Server(threading.Thread):
    """Answers each request with self.status; answered[i] is the status and
    the time just before it was sent."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.status = None
        self.connection = None
        self.answered = []
        self.start()

    def run(self):
        while True:
            self.connection = self.listener.accept()[0]
            for _ in self.connection.makefile('rb'):
                now = self.status
                reply = json.dumps({'ok': True, 'status': now})
                self.answered.append((now, time.monotonic()))
                try:
                    self.connection.sendall(reply.encode() + b'\n')
                except OSError:
                    break


class Watch:
    def __init__(self, command, columns, rows, **env):
        is_ready, ready = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.close(ready)
            os.read(is_ready, 1)        # until the terminal has its size
            os.execve(command[0], command,
                      dict(os.environ, TERM='xterm', **env))
        self.before = termios.tcgetattr(self.fd)
        self.resize(columns, rows)
        os.close(is_ready)
        os.close(ready)
        # A character may come in two parts.
        self.decoder = codecs.getincrementaldecoder('utf-8')()
        self.text = ''

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ,
                    struct.pack('HHHH', rows, columns, 0, 0))

    def more(self, seconds):
        """False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.text += self.decoder.decode(data)
        return data != b''

    def frames(self):
        """Those that are complete, each a list of lines; with colours."""
        parts = self.text.split('\x1b[H')[1:]
        return [p.split('\x1b[J')[0].split('\r\n') for p in parts
                if '\x1b[J' in p]

    def must_go_on(self, wanted):
        """It writes something, and has not ended; else it is late."""
        before, end = len(self.text), time.monotonic() + PATIENCE
        while len(self.text) == before:
            if time.monotonic() > end:
                late(f'nothing in {PATIENCE} s, not {wanted}')
            assert self.more(1), f'it ended: {self.text[-300:]!r}'

    def until(self, is_there, wanted):
        """Until is_there is true of all that it wrote."""
        while not is_there(self.text):
            self.must_go_on(wanted)

    def frame(self, *wanted):
        """A frame from now on that has all these."""
        start = len(self.frames())
        while True:
            self.must_go_on(wanted)
            frames = self.frames()[start:]
            for lines in frames:
                text = COLOUR.sub('', '\n'.join(lines)).replace('\x1b[K', '')
                if all(re.search(w, text) for w in wanted):
                    self.check(lines)
                    return text
            assert len(frames) < MANY, f'no frame with {wanted}: {frames[-1]}'

    def check(self, lines):
        assert len(lines) <= self.rows, f'{len(lines)} lines of {self.rows}'
        for line in lines:
            assert line.endswith('\x1b[K'), repr(line)
            line = COLOUR.sub('', line[:-3])
            assert line.isprintable(), repr(line)
            assert len(line) <= self.columns, \
                f'{len(line)} of {self.columns}: {line}'

    def end(self, key=None, sig=None):
        """How it ended; the terminal is as before."""
        if key:
            os.write(self.fd, key)
        if sig:
            os.kill(self.pid, sig)
        after = None
        end = time.monotonic() + PATIENCE
        while self.more(0.1):
            if time.monotonic() > end:
                late('it does not end')
            try:
                after = termios.tcgetattr(self.fd)
            except termios.error:
                break
            if LEAVE in self.text and os.waitid(
                    os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
        status = os.waitpid(self.pid, 0)[1]
        try:
            after = termios.tcgetattr(self.fd)
        except termios.error:
            pass
        while self.more(0) and select.select([self.fd], [], [], 0)[0]:
            pass
        assert self.text.count(ENTER) == self.text.count(LEAVE), \
            f'not given back: {self.text[-200:]!r}'
        assert after is None or after == self.before, 'the keys are not as before'
        os.close(self.fd)
        return status


def rates(command, server, plain):
    """Rates and times, from one status to the next, about a second later."""
    server.status = plain
    w = Watch(command, 120, 40)
    w.frame('q quits')
    faster = copy.deepcopy(plain)
    faster['members'][2].update(read_ops=1000, read_bytes=4096000,
                                read_ns=5000000000)
    faster['counters'] = {'write_ops': 10, 'write_bytes': 10 << 20}
    server.status = faster
    text = w.frame(r'2 active  .* 5\.00 ')
    # It took its own times after these two answers.  It asks again a second
    # after the first, or later: as much later as the machine is slow.
    longest = time.monotonic() - [at for st, at in server.answered
                                  if st is plain][-1]

    def is_right(number, total, rounded):
        return total / longest - rounded <= number <= total * 1.01 + rounded

    def to_mib(number, unit):
        return float(number) * {'MiB': 1, 'KiB': 1 / 1024}[unit]

    line = [x for x in text.split('\n') if '5.00' in x][0].split()
    assert is_right(to_mib(*line[2:4]), 4096000 / (1 << 20), 0.06), line
    assert is_right(float(line[5]), 1000, 0.6), line
    write = re.search(r'write (\S+) (\S+)/s (\S+)/s', text)
    assert is_right(to_mib(*write.groups()[:2]), 10, 0.6), text
    assert is_right(float(write[3]), 10, 0.6), text
    return w


def on_fake_server(gpuraid, folder):
    server = Server(os.path.join(folder, 'fake'))
    command = [gpuraid, 'watch', server.path]
    plain = status(4, 2)
    work = {'done': 361, 'total': 1000, 'bytes_per_second': 210 << 20,
            'eta_seconds': 3725}
    bad = copy.deepcopy(plain)
    bad.update(state='degraded', rebuild=work, resync=work,
               scrub=dict(work, paused=True), lost_rows=3, label=None,
               read_only='nbdkit was started with -r ' + 'and so on ' * 20,
               engines=[{'name': 'cuda:0', 'failed': 'gone ' * 40}])
    bad['members'][1].update(state='rebuilding')
    bad['members'][3].update(no_space=True)
    bad['members'][4].update(path='/\u00e9' + '\u00e9' * 200, slow=True)
    bad['members'].append(member(None, path=None, state='spare'))
    bad['members'].append(member(9, path='/a\x1b[2Jb\n'))
    many = status(40, 24)
    many['members'][63].update(state='failed')

    for columns, rows in (60, 15), (80, 24), (120, 40), (200, 60):
        for what in plain, bad, many:
            server.status = what
            w = Watch(command, columns, rows)
            text = w.frame('slot', 'q quits')
            if what is plain:
                assert 'tank  4+2  4 TiB  healthy' in text, text
                assert text.count('active') == 6, text
            if what is bad:
                for word in ('no space on slot 3', '3 rows are lost',
                             'rebuild .*36.1 %  210 MiB/s  1 h 02 min left',
                             'scrub .*paused', 'read-only'):
                    assert re.search(word, text), f'no {word}: {text}'
                assert re.search('3 no space', text), text
                if columns >= 80:
                    assert re.search(r'rebuild \[=+>\.+\]', text), text
            if what is many:
                assert '63 failed' in text, text
                assert ('more members' in text) == (rows < 70), text
                assert len(text.split('\n')) == rows, text
            assert w.end(key=b'q') == 0
            assert COLOUR.search(w.text), 'no colour'

    w = rates(command, server, plain)

    # Another size, at once; below 60x15 too.
    for size in (60, 15), (120, 40), (20, 5), (1, 1), (500, 200):
        w.resize(*size)
        if size[0] > 20:
            whole_screen(w, 'q quits', lambda screen: 'q quits' in screen)
        else:
            whole_screen(w, 'one that fits', lambda screen: True)
    assert os.WTERMSIG(w.end(sig=signal.SIGTERM)) == signal.SIGTERM

    # Ctrl-C; and Ctrl-Z, which does not stop a program that has no shell, but
    # the screen is given back and taken again.
    w = Watch(command, 60, 15)
    w.frame('q quits')
    os.write(w.fd, b'\x1a')
    w.until(lambda text: text.count(ENTER) == 2, 'the screen again')
    w.frame('q quits')
    assert w.text.count(LEAVE) == 1 and w.text.count(ENTER) == 2
    assert os.WTERMSIG(w.end(key=b'\x03')) == signal.SIGINT

    for env in {'NO_COLOR': '1'}, {'TERM': 'dumb'}:
        w = Watch(['/usr/bin/env'] + [f'{a}={b}' for a, b in env.items()] +
                  command, 60, 15)
        w.frame('q quits')
        assert w.end(key=b'q') == 0
        assert not COLOUR.search(w.text), f'{env}: colour'

    # The server goes.
    w = Watch(command, 60, 15)
    w.frame('q quits')
    server.connection.shutdown(socket.SHUT_RDWR)
    assert w.end() == 0
    assert w.text.endswith('the server has gone\r\n'), repr(w.text[-100:])

    # Elsewhere plain lines.
    server.status = bad
    p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = p.stdout.readline()
    p.kill()
    p.wait()
    assert line[:-1].isprintable(), repr(line)
    assert 'degraded' in line and 'slot 3 no space' in line, line
    out = subprocess.run([gpuraid, 'status', server.path], text=True,
                         stdout=subprocess.PIPE).stdout
    assert re.search('^ +3  no space ', out, re.M), out


# ---- whole screens ----------------------------------------------------

SIZES = (60, 15), (120, 40)


def scenes():
    """What is recorded: names and statuses."""
    healthy = status(4, 2)
    work = {'done': 361, 'total': 1000, 'bytes_per_second': 210 << 20,
            'eta_seconds': 3725, 'paused': False}
    rebuild = copy.deepcopy(healthy)
    rebuild.update(state='degraded', reasons=['members lost'], rebuild=work)
    rebuild['members'][1].update(state='rebuilding')
    rebuild['members'].append(member(None, path='/srv/disks/spare.img',
                                     state='spare'))
    paused = copy.deepcopy(rebuild)
    paused.update(rebuild=dict(work, paused=True),
                  scrub=dict(work, paused=True, done=5))
    full = copy.deepcopy(paused)
    full['members'][3].update(no_space=True, errors=17)
    full['members'].append(member(None, path=None, state='missing',
                                  uuid='0f1e2d3c-0000-1111-2222-333344445555'))
    widen = copy.deepcopy(healthy)
    widen['reshape'] = dict(work, kind='widen', k=4, m=2, state='moving',
                            why=None)
    waits = copy.deepcopy(widen)
    waits['reshape'].update(state='waiting', why='for someone')
    many = status(40, 24)
    many['members'][63].update(state='failed')
    many.update(state='degraded', resync=work)
    return [('healthy', healthy), ('a rebuild', rebuild),
            ('the rebuild is paused, and a scrub', paused),
            ('no space, a spare is missing', full), ('a widening', widen),
            ('it waits', waits), ('64 members', many)]


def frames_path(columns, rows):
    return os.path.join(os.path.dirname(os.path.realpath(__file__)),
                        f'watch-frames-{columns}x{rows}.txt')


def read_frames(columns, rows):
    with open(frames_path(columns, rows)) as f:
        parts = f.read().split('=== ')
    frames = {}
    for part in parts[1:]:
        name, text = part.split('\n', 1)
        lines = text.split('\n')[:-1]
        assert len(lines) == rows, f'{name}: {len(lines)} lines'
        assert max(map(len, lines)) <= columns, f'{name}: too wide'
        frames[name] = '\n'.join(lines)
    return frames


def whole_screen(w, wanted, is_right=None):
    """A whole frame from now on that fits and is right: its screen.  wanted
    is what it must be."""
    def is_wanted(screen):
        return screen == wanted
    start, nr = len(w.text), 0
    screen = wrong = None
    while nr < MANY:
        w.must_go_on(wanted)
        parts = [part for part in w.text[start:].split('\x1b[H')[1:]
                 if '\x1b[J' in part]
        for part in parts:
            t = Terminal(w.columns, w.rows, part)
            screen, wrong = t.show(), t.wrong
            if wrong is None and (is_right or is_wanted)(screen):
                return screen
        nr = len(parts)
    sys.exit(f'no such screen of {w.columns}x{w.rows}:\n{wanted}\n'
             f'--- the last one ({wrong}):\n{screen}')


def record(gpuraid, folder):
    server = Server(os.path.join(folder, 'record'))
    for columns, rows in SIZES:
        with open(frames_path(columns, rows), 'w') as f:
            for name, st in scenes():
                server.status = st
                w = Watch([gpuraid, 'watch', server.path], columns, rows)
                f.write(f'=== {name}\n{whole_screen(w, None, bool)}\n')
                assert w.end(key=b'q') == 0


def as_recorded(gpuraid, folder):
    server = Server(os.path.join(folder, 'recorded'))
    command = [gpuraid, 'watch', server.path]
    frames = {size: read_frames(*size) for size in SIZES}
    for size in SIZES:
        server.status = scenes()[0][1]
        w = Watch(command, *size)
        for name, st in scenes():
            server.status = st
            whole_screen(w, frames[size][name])
        # Another size while it runs, and back.
        for other in SIZES + SIZES[:1]:
            w.resize(*other)
            whole_screen(w, frames[other][name])
        assert w.end(key=b'q') == 0


def on_array(gpuraid, control):
    for columns, rows in SIZES:
        w = Watch([gpuraid, 'watch', control], columns, rows)
        text = w.frame('rebuild .*%', '1 rebuilding', 'q quits')
        assert 'degraded' in text, text
        assert re.search(r'rebuild \[[=>.]+\] .* (left|unknown)', text), text
        for slot in range(6):
            assert re.search(f'^ +{slot} (active|rebuilding) ', text, re.M), \
                f'no slot {slot}: {text}'
        subprocess.run([gpuraid, 'rebuild', control, 'pause'], check=True)
        w.frame('rebuild .*%  paused', '1 rebuilding', 'q quits')
        subprocess.run([gpuraid, 'rebuild', control, 'resume'], check=True)
        for size in SIZES:
            w.resize(*size)
            whole_screen(w, 'a rebuild of slot 1', lambda screen: re.search(
                'rebuild .*%(.|\n)*1 rebuilding(.|\n)*q quits', screen))
        assert w.end(key=b'q') == 0


if sys.argv[1] == '--record':
    record(*sys.argv[2:])
elif len(sys.argv) > 3:
    on_array(sys.argv[1], sys.argv[3])
else:
    as_recorded(sys.argv[1], sys.argv[2])
    on_fake_server(sys.argv[1], sys.argv[2])
