"""Clients that stay connected, for test-stop-connected.sh.

stop-clients.py KIND URI [TLS-PSK-FILE]

It prints "connected" when it is, and "end" when the server has ended its
connection.  What is written is of b'w' at 0, and, flushed after that, of b'f'
at 1 MiB.

SPDX-License-Identifier: BSD-3-Clause
"""

import socket
import struct
import sys

import nbd

MIB = 1 << 20


def say(what):
    print(what, flush=True)


def until_end(h):
    """Asks nothing, and waits until the connection ends."""
    say('connected')
    try:
        while True:
            h.poll(-1)
            if h.aio_is_dead() or h.aio_is_closed():
                break
    except nbd.Error:
        pass
    say('end')


def connect(uri, tls=None):
    h = nbd.NBD()
    if tls:
        h.set_tls(nbd.TLS_REQUIRE)
        h.set_tls_psk_file(tls)
        h.set_tls_username('alice')
    h.connect_uri(uri)
    return h


def writer(uri, tls=None):
    h = connect(uri, tls)
    h.pwrite(b'f' * MIB, MIB)
    h.flush()
    h.pwrite(b'w' * MIB, 0)
    until_end(h)


def flusher(uri):
    """Has a flush in flight, of which it says how it ended."""
    h = connect(uri)
    h.pwrite(b'w' * MIB, 0)
    say('connected')
    try:
        h.flush()
        say('flushed')
    except nbd.Error as e:
        say('error: %s' % e.string)
    try:
        while True:
            h.pread(512, 0)
    except nbd.Error:
        say('end')


def again(uri):
    """Connects anew whenever its connection has ended."""
    first = True
    while True:
        h = nbd.NBD()
        try:
            h.connect_uri(uri)
            if first:
                say('connected')
            first = False
            h.pread(512, 0)
            while not (h.aio_is_dead() or h.aio_is_closed()):
                h.poll(-1)
        except nbd.Error:
            pass


def unix(uri):
    s = socket.socket(socket.AF_UNIX)
    s.connect(uri.split('socket=')[1])
    return s


def mute(uri):
    """Never says what it wants."""
    s = unix(uri)
    assert s.recv(18, socket.MSG_WAITALL)[:8] == b'NBDMAGIC'
    say('connected')
    while s.recv(100):
        pass
    say('end')


def deaf(uri):
    """Asks for more than a socket holds, and reads no reply."""
    s = unix(uri)
    s.recv(18, socket.MSG_WAITALL)
    s.sendall(struct.pack('>I', 3) + b'IHAVEOPT' + struct.pack('>II', 1, 0))
    s.recv(10, socket.MSG_WAITALL)
    for i in range(8):
        s.sendall(struct.pack('>IHHQQI', 0x25609513, 0, 0, i, 0, MIB))
    # The server has begun to answer.
    s.recv(16, socket.MSG_WAITALL | socket.MSG_PEEK)
    say('connected')
    sys.stdin.read()


globals()[sys.argv[1]](*sys.argv[2:])
