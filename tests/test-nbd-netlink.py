#!/usr/bin/python3
# test-nbd-netlink: the messages to the kernel, the handshake, and the
# watch over a server that dies and comes back
#
# A recorder takes the kernel's side if the test needs no nbd driver.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

import importlib.util
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.join(TOP, 'scripts', 'nbd-netlink.py')
spec = importlib.util.spec_from_file_location('nbd_netlink', SCRIPT)
nl = importlib.util.module_from_spec(spec)
spec.loader.exec_module(nl)
PATIENCE = 60


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            print(f'not within {PATIENCE} s', file=sys.stderr)
            os._exit(75)        # only time ran out: run-tests tries it again
        time.sleep(0.05)


class Server:
    """nbdkit memory on a socket of its own."""

    def __init__(self, size='1M'):
        self.tmp = tempfile.mkdtemp()
        self.path = os.path.join(self.tmp, 'sock')
        self.start(size)

    def start(self, size='1M', description=None):
        plugin = ['memory', size]
        if description:
            plugin = ['eval', 'get_size=echo ' + size,
                      'pread=head -c $3 /dev/zero',
                      'export_description=echo ' + description]
        self.launch(plugin)

    def launch(self, arguments):
        """nbdkit writes its pid file when it listens."""
        pid_file = os.path.join(self.tmp, 'pid')
        if os.path.exists(pid_file):
            os.unlink(pid_file)
        self.process = subprocess.Popen(
            ['nbdkit', '-f', '-U', self.path, '-P', pid_file] + arguments)
        wait_until(lambda: os.path.exists(pid_file)
                   or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise RuntimeError('no server')

    def kill(self):
        self.process.kill()
        self.process.wait()
        os.unlink(self.path)

    def close(self):
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.tmp)


class Recorder:
    """In the place of the kernel: keeps what it was asked."""

    def __init__(self):
        self.calls = []
        self.called = threading.Event()
        self.keeps_size = False

    def nbd(self, cmd, *attrs):
        attrs = nl.parse_attrs(b''.join(attrs))
        self.calls.append((cmd, attrs))
        self.called.set()
        if cmd == nl.NBD_CMD_RECONFIGURE and self.keeps_size \
           and nl.NBD_ATTR_SIZE_BYTES in attrs:
            raise OSError(22, 'Invalid argument')
        return {nl.NBD_ATTR_INDEX: struct.pack('=I', 7)}


def socket_fds(attrs):
    """The numbers in a NBD_ATTR_SOCKETS, all items of it."""
    data, fds = attrs[nl.NBD_ATTR_SOCKETS], []
    while data:
        length = struct.unpack_from('=H', data)[0]
        item = nl.parse_attrs(data[:length])[nl.NBD_SOCK_ITEM]
        fd = nl.parse_attrs(item)[nl.NBD_SOCK_FD]
        fds.append(struct.unpack('=I', fd)[0])
        data = data[(length + 3) & ~3:]
    return fds


def read_block(fd):
    """Read 512 bytes with the protocol, as the kernel would."""
    s = socket.socket(fileno=os.dup(fd))
    with s:
        s.sendall(struct.pack('>IHHQQI', 0x25609513, 0, 0, 99, 0, 512))
        magic, error, cookie = struct.unpack('>IIQ', nl.receive(s, 16))
        assert (magic, error, cookie) == (0x67446698, 0, 99)
        return nl.receive(s, 512)


class Uri(unittest.TestCase):
    def test_socket(self):
        """A + is a +, as for libnbd."""
        for text in 'a+b', 'a%2Bb', 'a%2bb&tls-certificates=/x':
            uri = 'nbd+unix:///?socket=/tmp/' + text
            self.assertEqual(nl.Export(uri).path, '/tmp/a+b')
            self.assertEqual(nl.find_address(uri)[1], '/tmp/a+b')

    def test_bad_port(self):
        """One line, no traceback."""
        for uri in 'nbd://host:x/', 'nbd://host:99999/', 'nbd://[::1/':
            for call in nl.Export, nl.find_address:
                with self.assertRaisesRegex(nl.Error, '^nbd://'):
                    call(uri)


class Messages(unittest.TestCase):
    def test_constants(self):
        """As the kernel's header numbers them."""
        with open('/usr/include/linux/nbd-netlink.h') as f:
            text = re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
        found = 0
        for body in re.findall(r'enum\s*{(.*?)}', text, flags=re.S):
            names = [n.strip() for n in body.split(',') if n.strip()]
            for value, name in enumerate(names):
                if hasattr(nl, name):
                    self.assertEqual(getattr(nl, name), value, name)
                    found += 1
        self.assertEqual(found, 11)

    def test_reconfigure_bytes(self):
        with socket.socket() as s:
            fd = s.fileno()
            message = nl.make_message(
                0x1c, nl.NBD_CMD_RECONFIGURE, 5,
                [nl.attr_u32(nl.NBD_ATTR_INDEX, 3), nl.attr_sockets([s])])
        self.assertEqual(message, struct.pack(
            '=IHHII' 'BBH' 'HHI' 'HHHHHHI',
            16 + 4 + 8 + 16, 0x1c, 5, 5, 0,
            3, 1, 0,
            8, 1, 3,
            16, 0x8007, 12, 0x8001, 8, 1, fd))

    def test_padding(self):
        self.assertEqual(nl.attr(2, b'nbd\0!'),
                         struct.pack('=HH', 9, 2) + b'nbd\0!' + bytes(3))
        self.assertEqual(nl.attr_u64(2, 1 << 40),
                         struct.pack('=HHQ', 12, 2, 1 << 40))

    def test_parse(self):
        data = nl.attr(1, b'abc') + nl.attr(0x8002, b'') + nl.attr(3, b'd')
        self.assertEqual(nl.parse_attrs(data), {1: b'abc', 2: b'', 3: b'd'})
        for bad in b'\x03\0\x01\0', b'\x09\0\x01\0abcd':
            with self.assertRaises(nl.Error):
                nl.parse_attrs(bad)

    def test_kernel(self):
        """Ask the kernel itself about two families."""
        netlink = nl.Netlink()
        self.assertEqual(netlink.find_family('nlctrl'), nl.GENL_ID_CTRL)
        with self.assertRaises(FileNotFoundError):
            netlink.find_family('no-such-family')
        # The next answer is not taken for that one.
        self.assertEqual(netlink.find_family('nlctrl'), nl.GENL_ID_CTRL)

    def test_uri(self):
        e = nl.Export('/run/x.sock')
        self.assertEqual((e.path, e.name), ('/run/x.sock', ''))
        e = nl.Export('nbd+unix:///disk%201?socket=/run/x.sock')
        self.assertEqual((e.path, e.name), ('/run/x.sock', 'disk 1'))
        e = nl.Export('nbd://host/d')
        self.assertEqual((e.host, e.port, e.name), ('host', 10809, 'd'))
        e = nl.Export('nbd://[::1]:10/')
        self.assertEqual((e.host, e.port, e.name), ('::1', 10, ''))
        for bad in 'nbds://host', 'nbd+unix:///', 'http://host':
            with self.assertRaises(nl.Error):
                nl.Export(bad)


class Handshake(unittest.TestCase):
    def test_nbdkit(self):
        server = Server('3M')
        self.addCleanup(server.close)
        export = nl.Export(server.path)
        with export.connect() as s:
            self.assertEqual(export.size, 3 << 20)
            self.assertTrue(export.flags & nl.NBD_FLAG_CAN_MULTI_CONN)
            self.assertTrue(s.getblocking())
            self.assertEqual(read_block(s.fileno()), bytes(512))

    def answer(self, data):
        """What handshake makes of a server that sends this."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(5)
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            return nl.handshake(ours, '')

    def test_servers(self):
        hello = struct.pack('>QQH', nl.NBD_MAGIC, nl.NBD_IHAVEOPT, 3)

        def reply(kind, data):
            return struct.pack('>QIII', nl.NBD_REP_MAGIC, nl.NBD_OPT_GO,
                               kind, len(data)) + data

        size = reply(3, struct.pack('>HQH', 0, 4096, 0x125))
        other = reply(3, struct.pack('>HIII', 3, 1, 4096, 1 << 25))
        ack = reply(1, b'')
        self.assertEqual(self.answer(hello + other + size + ack),
                         (4096, 0x125, ''))
        text = reply(3, struct.pack('>H', 2) + b'an array')
        self.assertEqual(self.answer(hello + text + size + ack),
                         (4096, 0x125, 'an array'))
        old = struct.pack('>QQQ', nl.NBD_MAGIC, 0x00420281861253, 4096)
        for data, why in ((b'', 'hung up'),
                          (b'HTTP/1.1 400 Bad Request\r\n', 'not an NBD'),
                          (old, 'not an NBD'),
                          (hello, 'hung up'),
                          (hello + size, 'hung up'),
                          (hello + bytes(20), 'keep to the protocol'),
                          (hello + ack, 'did not say the size'),
                          (hello + reply(1 << 31 | 6, b'what?'),
                           'refused: what[?]'),
                          (hello + reply(1 << 31 | 6, b''), '0x80000006')):
            with self.assertRaisesRegex(nl.Error, why):
                self.answer(data)

    def test_choose(self):
        """The export that survives a restart, where one is offered."""
        server = Server()
        self.addCleanup(server.close)
        export = nl.Export(server.path)
        export.choose()
        self.assertEqual(export.name, '')

        server.kill()
        server.launch(['--filter=exportname', 'memory', '1M',
                       'exportname-list=explicit', 'exportname=a',
                       'exportname=' + nl.WRITETHROUGH])
        export.choose()
        self.assertEqual(export.name, nl.WRITETHROUGH)
        named = nl.Export(f'nbd+unix:///a?socket={server.path}')
        named.choose()
        self.assertEqual(named.name, 'a')

    def test_command(self):
        server = Server('2M')
        self.addCleanup(server.close)
        out = subprocess.run([SCRIPT, 'info', server.path],
                             capture_output=True, text=True)
        self.assertEqual(out.returncode, 0)
        self.assertIn(f'size={2 << 20} ', out.stdout)
        server.kill()
        out = subprocess.run([SCRIPT, 'info', '--no-wait', server.path],
                             capture_output=True, text=True)
        self.assertEqual(out.returncode, 1)
        self.assertEqual(out.stderr.count('\n'), 1)


class Greeting(unittest.TestCase):
    def listen(self, answers):
        """A server that sends, to each connection, the next of the answers
        once it has read as many bytes as the answer's number says."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, 'sock')
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen()

        def serve():
            for nr, answer in answers:
                s, _ = listener.accept()
                with s:
                    if nr:
                        s.recv(nr)
                    s.sendall(answer)
        threading.Thread(target=serve, daemon=True).start()
        return f'nbd+unix:///?socket={path}', path

    def test_nbdkit(self):
        server = Server()
        self.addCleanup(server.close)
        for uri in 'nbd+unix:///?socket=', 'nbds+unix:///export?socket=':
            self.assertEqual(nl.greet(uri + server.path),
                             'unix ' + server.path)

    def test_slow(self):
        """It greets only after the time in which a server normally does."""
        greeting = struct.pack('>QQH', nl.NBD_MAGIC, nl.NBD_IHAVEOPT, 3)
        uri, path = self.listen([(1, greeting)])
        self.assertEqual(nl.greet(uri), 'unix ' + path)

    def test_starts(self):
        """It has no socket yet, then one on which it does not listen yet."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, 'sock')
        uri = f'nbd+unix:///?socket={path}'
        greeting = struct.pack('>QQH', nl.NBD_MAGIC, nl.NBD_IHAVEOPT, 3)
        found = []
        thread = threading.Thread(
            target=lambda: found.append(nl.greet(uri, PATIENCE)))
        with self.assertRaises(FileNotFoundError):
            nl.greet(uri)
        thread.start()
        # It may have tried by then, or not: it succeeds.
        time.sleep(0.3)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            with self.assertRaises(ConnectionRefusedError):
                nl.greet(uri)
            time.sleep(0.3)
            listener.settimeout(2 * PATIENCE)
            listener.listen()
            s, _ = listener.accept()
            with s:
                s.sendall(greeting)
                thread.join()
        self.assertEqual(found, ['unix ' + path])

    def test_file(self):
        """No server will listen there: it is refused at once."""
        with tempfile.NamedTemporaryFile() as f:
            with self.assertRaises(ConnectionRefusedError):
                nl.greet(f'nbd+unix:///?socket={f.name}', 3600)

    def test_other(self):
        uri, _ = self.listen([(1, b'{"ok": false, "message": "no"}\n'),
                              (0, b'SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n'),
                              (0, b'')])
        for why in 'control socket', 'does not greet', 'hung up':
            with self.assertRaisesRegex(nl.Error, why):
                nl.greet(uri)


class Watch(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.close)
        self.kernel = Recorder()
        self.export = nl.Export(self.server.path)

    def test_start(self):
        index, sockets = nl.start(self.kernel, self.export, 3, 60)
        self.assertEqual(index, 7)
        self.assertEqual(len(sockets), 3)
        (cmd, attrs), = self.kernel.calls
        self.assertEqual(cmd, nl.NBD_CMD_CONNECT)
        self.assertEqual(attrs[nl.NBD_ATTR_SIZE_BYTES],
                         struct.pack('=Q', 1 << 20))
        self.assertEqual(attrs[nl.NBD_ATTR_DEAD_CONN_TIMEOUT],
                         struct.pack('=Q', 60))
        self.assertEqual(attrs[nl.NBD_ATTR_SERVER_FLAGS],
                         struct.pack('=Q', self.export.flags))
        self.assertEqual(socket_fds(attrs), [s.fileno() for s in sockets])
        for s in sockets:
            s.close()

    def test_restart(self):
        """A new socket to the new server, and not before it is there."""
        s = self.export.connect()
        thread = threading.Thread(target=self.watch, args=(s,), daemon=True)
        thread.start()
        self.assertFalse(self.kernel.called.wait(1))
        for _ in range(2):
            self.server.kill()
            self.assertFalse(self.kernel.called.wait(1))
            # Another export in the same place is not ours.
            self.server.start('2M')
            self.assertFalse(self.kernel.called.wait(1.5))
            self.server.kill()
            self.server.start('1M')
            wait_until(self.kernel.called.is_set)
            self.kernel.called.clear()
            cmd, attrs = self.kernel.calls[-1]
            self.assertEqual(cmd, nl.NBD_CMD_RECONFIGURE)
            self.assertEqual(attrs[nl.NBD_ATTR_INDEX], struct.pack('=I', 7))
            fd, = socket_fds(attrs)
            self.assertEqual(read_block(fd), bytes(512))
        self.assertEqual(len(self.kernel.calls), 2)

    def test_grown(self):
        """The same array with another size, told or found."""
        self.server.kill()
        self.server.start('1M', 'array 1')
        sockets = [self.export.connect()]
        threading.Thread(target=self.watch, args=sockets,
                         kwargs={'sockets': sockets}, daemon=True).start()
        self.server.kill()
        for other in ('2M', 'array 2'), ('2M', None), ('64K', 'array 1'):
            self.server.start(*other)
            self.assertFalse(self.kernel.called.wait(1.5))
            self.server.kill()
        self.server.start('2M', 'array 1')
        self.expect_size(2 << 20, 2)

        # It asks again, as on SIGHUP.
        wait_until(lambda: sockets)
        nl.shut_down(sockets)
        self.wait_calls(3)
        self.server.kill()
        self.server.start('3M', 'array 1')
        self.expect_size(3 << 20, 5)

    def test_size_kept(self):
        """The device stays attached, with its old size."""
        self.kernel.keeps_size = True
        self.server.kill()
        self.server.start('1M', 'array 1')
        sockets = [self.export.connect()]
        threading.Thread(target=self.watch, args=sockets,
                         kwargs={'sockets': sockets}, daemon=True).start()
        self.server.kill()
        self.server.start('2M', 'array 1')
        self.expect_size(2 << 20, 2)
        wait_until(lambda: self.export.size == 1 << 20)
        self.server.kill()
        self.server.start('2M', 'array 1')
        self.expect_size(2 << 20, 4)

    def expect_size(self, size, nr_calls):
        """A socket, then the size: the kernel may want to read before."""
        self.wait_calls(nr_calls)
        (cmd, attrs), (cmd2, attrs2) = self.kernel.calls[-2:]
        self.assertEqual((cmd, cmd2), (nl.NBD_CMD_RECONFIGURE,) * 2)
        self.assertNotIn(nl.NBD_ATTR_SIZE_BYTES, attrs)
        self.assertEqual(len(socket_fds(attrs)), 1)
        self.assertNotIn(nl.NBD_ATTR_SOCKETS, attrs2)
        self.assertEqual(attrs2[nl.NBD_ATTR_SIZE_BYTES],
                         struct.pack('=Q', size))

    def wait_calls(self, nr):
        wait_until(lambda: len(self.kernel.calls) >= nr)
        time.sleep(0.2)         # not more
        self.assertEqual(len(self.kernel.calls), nr)

    def watch(self, s, sockets=None):
        nl.watch(self.kernel, 7, self.export, sockets or [s])


if __name__ == '__main__':
    unittest.main(verbosity=2)
