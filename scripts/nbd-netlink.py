#!/usr/bin/python3
# nbd-netlink.py: attach an NBD server to the kernel's nbd driver, and keep
# it attached while the server is restarted.
#
#   nbd-netlink.py probe          is the driver here?  exit 1 if it is not
#   nbd-netlink.py info URI       the size and the flags of the export
#   nbd-netlink.py attach [--pid-file FILE] [--dead-timeout S] URI
#
# attach prints the device (/dev/nbd0) and starts a background process.  When
# a connection is lost the kernel holds its requests back; the process
# connects again and gives the kernel the new socket, and the requests
# are sent once more.  Users of the device see a pause and no error, for
# up to --dead-timeout seconds.  On SIGTERM the process detaches the
# device and exits.
#
# It decides when to connect again; scripts/mount handles the content of the
# device.  nbd-client's ioctl interface can't do this, so the netlink messages
# are made here, by hand.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import os
import select
import signal
import socket
import struct
import sys
import time
import urllib.parse

# <linux/netlink.h>, <linux/genetlink.h>
NETLINK_GENERIC = 16
NLM_F_REQUEST, NLM_F_ACK = 1, 4
NLMSG_ERROR, NLMSG_MIN_TYPE = 2, 0x10
NLA_F_NESTED, NLA_TYPE_MASK = 0x8000, 0x3fff
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 0x10, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2

# <linux/nbd-netlink.h>
NBD_GENL_FAMILY_NAME, NBD_GENL_VERSION = 'nbd', 1
NBD_CMD_CONNECT, NBD_CMD_DISCONNECT, NBD_CMD_RECONFIGURE = 1, 2, 3
NBD_ATTR_INDEX, NBD_ATTR_SIZE_BYTES, NBD_ATTR_BLOCK_SIZE_BYTES = 1, 2, 3
NBD_ATTR_SERVER_FLAGS, NBD_ATTR_SOCKETS, NBD_ATTR_DEAD_CONN_TIMEOUT = 5, 7, 8
NBD_SOCK_ITEM, NBD_SOCK_FD = 1, 1

# The NBD protocol.
NBD_MAGIC, NBD_IHAVEOPT = 0x4e42444d41474943, 0x49484156454f5054
NBD_REP_MAGIC = 0x3e889045565a9
NBD_FLAG_FIXED_NEWSTYLE, NBD_FLAG_NO_ZEROES = 1, 2
NBD_OPT_GO, NBD_REP_ACK, NBD_REP_INFO, NBD_INFO_EXPORT = 7, 1, 3, 0
NBD_REP_ERROR = 1 << 31
NBD_FLAG_CAN_MULTI_CONN = 1 << 8

HANDSHAKE_SECONDS = 10
RETRY_SECONDS = 0.5


class Error(Exception):
    pass


class Stop(Exception):
    """SIGTERM came."""


def attr(kind, data):
    return (struct.pack('=HH', len(data) + 4, kind) + data
            + bytes(-len(data) % 4))


def attr_u32(kind, value):
    return attr(kind, struct.pack('=I', value))


def attr_u64(kind, value):
    return attr(kind, struct.pack('=Q', value))


def attr_sockets(sockets):
    items = [attr(NLA_F_NESTED | NBD_SOCK_ITEM,
                  attr_u32(NBD_SOCK_FD, s.fileno())) for s in sockets]
    return attr(NLA_F_NESTED | NBD_ATTR_SOCKETS, b''.join(items))


def parse_attrs(data):
    attrs = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from('=HH', data)
        if not 4 <= length <= len(data):
            raise Error('netlink: an attribute of a wrong length')
        attrs[kind & NLA_TYPE_MASK] = data[4:length]
        data = data[(length + 3) & ~3:]
    return attrs


def make_message(family, cmd, seq, attrs):
    body = struct.pack('=BBH', cmd, NBD_GENL_VERSION, 0) + b''.join(attrs)
    return struct.pack('=IHHII', len(body) + 16, family,
                       NLM_F_REQUEST | NLM_F_ACK, seq, 0) + body


class Netlink:
    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                                    NETLINK_GENERIC)
        self.socket.bind((0, 0))
        self.seq = 0
        self.family = None

    def call(self, family, cmd, *attrs):
        """Ask, wait for the answer; its attributes, or OSError."""
        self.seq += 1
        self.socket.send(make_message(family, cmd, self.seq, attrs))
        answer = {}
        while True:
            data = self.socket.recv(65536)
            while len(data) >= 16:
                length, kind, _, seq, _ = struct.unpack_from('=IHHII', data)
                if not 16 <= length <= len(data):
                    raise Error('netlink: a message of a wrong length')
                body, data = data[16:length], data[(length + 3) & ~3:]
                if seq != self.seq:
                    continue
                if kind == NLMSG_ERROR:
                    err = -struct.unpack_from('=i', body)[0]
                    if err:
                        raise OSError(err, os.strerror(err))
                    return answer
                if kind >= NLMSG_MIN_TYPE:
                    answer.update(parse_attrs(body[4:]))

    def find_family(self, name):
        """The number of a generic netlink family."""
        answer = self.call(GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
                           attr(CTRL_ATTR_FAMILY_NAME, name.encode() + b'\0'))
        return struct.unpack('=H', answer[CTRL_ATTR_FAMILY_ID])[0]

    def find_nbd(self):
        try:
            self.family = self.find_family(NBD_GENL_FAMILY_NAME)
        except FileNotFoundError:
            raise Error('no kernel module nbd') from None

    def nbd(self, cmd, *attrs):
        if self.family is None:
            self.find_nbd()
        return self.call(self.family, cmd, *attrs)


class Export:
    """The address of a server, and its first answer about itself."""

    def __init__(self, uri):
        self.path = self.host = None
        if '://' not in uri:
            self.path, self.name = uri, ''
            return
        u = urllib.parse.urlsplit(uri)
        self.name = urllib.parse.unquote(u.path)[1:]
        if u.scheme == 'nbd+unix':
            self.path = urllib.parse.parse_qs(u.query).get('socket', [None])[0]
        elif u.scheme == 'nbd':
            self.host, self.port = u.hostname, u.port or 10809
        if not self.path and not self.host:
            raise Error(f'{uri}: not a nbd:// or nbd+unix:// URI of a server')

    def connect(self):
        """A socket after the handshake; self.size and self.flags."""
        if self.path:
            s = socket.socket(socket.AF_UNIX)
        else:
            s = socket.create_connection((self.host, self.port),
                                         HANDSHAKE_SECONDS)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            s.settimeout(HANDSHAKE_SECONDS)
            if self.path:
                s.connect(self.path)
            self.size, self.flags = handshake(s, self.name)
            s.settimeout(None)
        except BaseException:
            s.close()
            raise
        return s


def receive(s, length):
    data = b''
    while len(data) < length:
        more = s.recv(length - len(data))
        if not more:
            raise Error('the server hung up')
        data += more
    return data


def handshake(s, name):
    """Fixed newstyle, NBD_OPT_GO: the export's size and its flags."""
    magic, style, flags = struct.unpack('>QQH', receive(s, 18))
    if (magic, style) != (NBD_MAGIC, NBD_IHAVEOPT) \
       or not flags & NBD_FLAG_FIXED_NEWSTYLE:
        raise Error('not an NBD server, or one of the old style')
    flags &= NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES
    data = name.encode()
    data = struct.pack('>I', len(data)) + data + struct.pack('>H', 0)
    s.sendall(struct.pack('>IQII', flags, NBD_IHAVEOPT, NBD_OPT_GO, len(data))
              + data)
    export = None
    while True:
        magic, opt, kind, length = struct.unpack('>QIII', receive(s, 20))
        if magic != NBD_REP_MAGIC or opt != NBD_OPT_GO or length > 65536:
            raise Error('the server does not keep to the protocol')
        data = receive(s, length)
        if kind & NBD_REP_ERROR:
            raise Error('the server refused: '
                        + (data.decode(errors='replace') or hex(kind)))
        if kind == NBD_REP_INFO and len(data) >= 12 \
           and data[:2] == struct.pack('>H', NBD_INFO_EXPORT):
            export = struct.unpack('>QH', data[2:12])
        if kind == NBD_REP_ACK:
            if export is None:
                raise Error('the server did not say the size of the export')
            return export


def start(netlink, export, max_sockets, dead_timeout):
    """Attach: the number of the device, and the sockets it has."""
    sockets = [export.connect()]
    if export.flags & NBD_FLAG_CAN_MULTI_CONN:
        while len(sockets) < max_sockets:
            sockets.append(export.connect())
    answer = netlink.nbd(
        NBD_CMD_CONNECT, attr_u64(NBD_ATTR_SIZE_BYTES, export.size),
        attr_u64(NBD_ATTR_BLOCK_SIZE_BYTES, 512),
        attr_u64(NBD_ATTR_SERVER_FLAGS, export.flags),
        attr_u64(NBD_ATTR_DEAD_CONN_TIMEOUT, dead_timeout),
        attr_sockets(sockets))
    return struct.unpack('=I', answer[NBD_ATTR_INDEX])[0], sockets


def reconnect(netlink, index, export):
    """Wait for the server; give the kernel a new socket to it."""
    size = export.size
    said = None
    while True:
        # Also before the first try: the kernel takes a new socket only
        # to replace one that it knows to be dead.
        time.sleep(RETRY_SECONDS)
        try:
            s = export.connect()
            if export.size == size:
                break
            s.close()
            e = Error(f'the server has {export.size} bytes now, not {size}')
            export.size = size
        except (OSError, Error) as err:
            e = err
        if str(e) != said:
            said = str(e)
            log(f'waiting for the server: {said}')
    netlink.nbd(NBD_CMD_RECONFIGURE, attr_u32(NBD_ATTR_INDEX, index),
                attr_sockets([s]))
    log('connected again')
    return s


def watch(netlink, index, export, sockets):
    """Replace each socket that dies, for ever."""
    while True:
        poll = select.poll()
        for s in sockets:
            poll.register(s, select.POLLRDHUP)
        dead = [fd for fd, _ in poll.poll()]
        for s in [s for s in sockets if s.fileno() in dead]:
            sockets.remove(s)
            s.close()
            sockets.append(reconnect(netlink, index, export))


def log(message):
    print(f'nbd-netlink: {message}', file=sys.stderr, flush=True)


def on_sigterm(signum, frame):
    raise Stop


def serve(netlink, index, export, sockets):
    """The process that stays: watch until SIGTERM, then detach."""
    signal.signal(signal.SIGTERM, on_sigterm)
    status = 0
    try:
        watch(netlink, index, export, sockets)
    except Stop:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except (OSError, Error) as e:
        log(f'/dev/nbd{index}: {e}')
        status = 1
    try:
        netlink.nbd(NBD_CMD_DISCONNECT, attr_u32(NBD_ATTR_INDEX, index))
    except OSError as e:
        log(f'/dev/nbd{index}: detach: {e}')
        status = 1
    return status


def attach(args):
    netlink = Netlink()
    export = Export(args.uri)
    index, sockets = start(netlink, export, args.connections,
                           args.dead_timeout)
    pid = os.fork()
    if pid:
        if args.pid_file:
            with open(args.pid_file, 'w') as f:
                print(pid, file=f)
        print(f'/dev/nbd{index}')
        return 0
    os.setsid()
    os.chdir('/')
    null = os.open('/dev/null', os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os._exit(serve(netlink, index, export, sockets))


def main():
    parser = argparse.ArgumentParser(prog='nbd-netlink.py')
    commands = parser.add_subparsers(dest='command', required=True)
    commands.add_parser('probe')
    commands.add_parser('info').add_argument('uri')
    p = commands.add_parser('attach')
    p.add_argument('--pid-file')
    p.add_argument('--dead-timeout', type=int, default=600)
    p.add_argument('--connections', type=int, default=4)
    p.add_argument('uri')
    args = parser.parse_args()
    try:
        if args.command == 'attach':
            return attach(args)
        if args.command == 'probe':
            Netlink().find_nbd()
            return 0
        export = Export(args.uri)
        export.connect().close()
        print(f'size={export.size} flags={export.flags:#x}')
    except (OSError, Error) as e:
        sys.exit(f'nbd-netlink: {e}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
