"""gpuraid: a server with volatile-plugin.so, and what it is told.

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import signal
import socket
import subprocess
import threading

from lab.array import SAN, STILL, Failure, Late, until_up

# Never with a sanitizer: that is for the array.
PLUGIN = os.path.realpath(os.path.join(
    not SAN and os.environ.get('B') or 'build', 'tests/volatile-plugin.so'))


class Server:
    """Its memory is gone when it ends.  revive () starts it again if it ended
    by itself while it should be there, as its unit would: nbdkit 1.32 may do
    so when a client is gone before it was answered.  Any thread may call."""

    def __init__(self, disks, sock, control, log):
        self.disks, self.sock, self.control = disks, sock, control
        self.log = log
        self.lock = threading.RLock()
        self.wanted = False
        self.usec = 0
        self.revived = 0
        self.process = self.link = self.talk = None

    def is_there(self):
        return self.process is not None and self.process.poll() is None

    def start(self):
        with self.lock:
            self.wanted = True
            if not self.is_there():
                self._start()

    def _start(self):
        self._hang_up()
        for f in self.sock, self.control:
            if os.path.exists(f):
                os.unlink(f)
        self.process = subprocess.Popen(
            ['nbdkit', '-f', '-U', self.sock, PLUGIN, 'dir=' + self.disks,
             'control=' + self.control],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until_up('nbdkit for the disks', self.process, self._call)
        # It is answered when clients are served, too.
        self._say('delay', self.usec)
        self._say('tear', self.usec)

    def _call(self):
        if self.talk:
            return True
        link = socket.socket(socket.AF_UNIX)
        try:
            link.connect(self.control)
        except OSError:
            link.close()
            return False
        link.settimeout(STILL)
        self.link, self.talk = link, link.makefile('rw')
        return True

    def _hang_up(self):
        if self.talk:
            try:
                self.talk.close()
            except OSError:
                pass            # it has ended
            self.link.close()
        self.link = self.talk = None

    def _say(self, *words):
        """None: it has ended."""
        line = ' '.join(map(str, words))
        try:
            self.talk.write(line + '\n')
            self.talk.flush()
            answer = self.talk.readline().split()
        except socket.timeout:
            raise Late('the disks do not answer: ' + line)
        except OSError:
            return None
        if answer and answer[0] != 'ok':
            raise Failure('the disks: %s: %s' % (line, ' '.join(answer)))
        return [int(w) for w in answer[1:]] if answer else None

    def command(self, *words):
        with self.lock:
            answer = self._say(*words)
        if answer is None:
            raise Failure('the disks: %s: no answer' % ' '.join(
                map(str, words)))
        return answer

    def delay(self, usec):
        with self.lock:
            self.usec = usec
            if self.is_there():
                self._say('delay', usec)
                self._say('tear', usec)

    def off(self, name, mode, seed, die):
        """The power of its disk fails.  die: the server is gone, too;
        otherwise I/O gets EIO."""
        with self.lock:
            self.wanted = False
            if not self.is_there():
                return
            self._say('die' if die else 'off', seed, mode, name)
            if die:
                self.process.wait(STILL)
                self._hang_up()

    def on(self, name):
        with self.lock:
            self.start()
            self.command('on', name)

    def hang(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def revive(self):
        with self.lock:
            if self.wanted and not self.is_there():
                self.revived += 1
                self._start()

    def close(self):
        with self.lock:
            self.wanted = False
            self._hang_up()
            if self.process:
                self.process.kill()
                self.process.wait()
                self.process = None
