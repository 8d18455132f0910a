#!/usr/bin/python3
# nbd-netlink.py: attach an NBD server to the kernel's nbd driver, and keep
# it attached while the server is restarted.
#
#   nbd-netlink.py probe          is the driver here?  exit 1 if it is not
#   nbd-netlink.py greet URI      is an NBD server there?  prints its address;
#                                 exit 1 if there is none, with the reason
#   nbd-netlink.py info URI       the size and the flags of the export
#   nbd-netlink.py attach [--pid-file FILE] [--dead-timeout S] URI
#   nbd-netlink.py detach DEVICE  one whose process was killed
#
# A server that starts makes its socket before it listens there.  So greet, info
# and attach try for some seconds, unless --no-wait is given.
#
# attach prints the device (/dev/nbd0) and starts a background process.  When
# a connection is lost the kernel holds its requests back; the process
# connects again and gives the kernel the new socket, and the requests
# are sent once more.  Users of the device see a pause and no error, for
# up to --dead-timeout seconds.  On SIGTERM the process detaches the
# device and exits.  On SIGHUP it connects again: a server tells the size only
# then, and nbdkit refuses requests beyond the size that it told.
#
# What the kernel has written and not flushed is not sent again.  So where the
# URI names no export and the server offers one of the name "writethrough", as
# gpuraid does, that is attached: with it there is nothing to lose.
#
# A server that comes back must have the same export: of the same size, unless
# its description says that it is the same array, which may have grown.  Then the
# device grows, too.
#
# There is one connection, because the kernel (6.1) gives up one that has not
# answered a request for 30 seconds only where there are others; the request is
# then sent twice, and the first may be carried out after a later one to the same
# place.  With one it only looks, each RESEND_SECONDS, whether the connection is
# another now, and then sends the request again.
#
# It decides when to connect again; scripts/mount handles the content of the
# device.  nbd-client's ioctl interface can't do this, so the netlink messages
# are made here, by hand.
#
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import ipaddress
import os
import re
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
NBD_OPT_ABORT, NBD_OPT_LIST, NBD_OPT_GO = 2, 3, 7
NBD_REP_ACK, NBD_REP_SERVER, NBD_REP_INFO = 1, 2, 3
NBD_INFO_EXPORT, NBD_INFO_DESCRIPTION = 0, 2
NBD_REP_ERROR = 1 << 31
NBD_FLAG_CAN_MULTI_CONN = 1 << 8

HANDSHAKE_SECONDS = 10
GREETING_SECONDS = 0.5
RETRY_SECONDS = 0.5
RESEND_SECONDS = 5
START_SECONDS, START_RETRY_SECONDS = 5, 0.1

WRITETHROUGH = 'writethrough'   # an export of gpuraid


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


def parse_uri(uri):
    """urlsplit, or Error."""
    try:
        u = urllib.parse.urlsplit(uri)
        u.port                  # may be wrong, too
        return u
    except ValueError as e:
        raise Error(f'{uri}: {e}') from None


def find_socket(u):
    """As libnbd reads it, which takes no + for a space."""
    for param in re.split('[&;]', u.query):
        name, _, value = param.partition('=')
        if name == 'socket':
            return urllib.parse.unquote(value)
    return None


def dial(family, address, seconds):
    """A socket to a server, which has these seconds to start."""
    end = time.monotonic() + seconds
    while True:
        s = None
        try:
            if family == socket.AF_INET:
                return socket.create_connection(address, HANDSHAKE_SECONDS)
            s = socket.socket(family)
            s.settimeout(HANDSHAKE_SECONDS)
            s.connect(address)
            return s
        except OSError as e:
            if s:
                s.close()
            if not isinstance(e, (ConnectionRefusedError, FileNotFoundError)) \
               or time.monotonic() > end \
               or family == socket.AF_UNIX and os.path.isfile(address):
                raise
            time.sleep(START_RETRY_SECONDS)


class Export:
    """The address of a server, and its first answer about itself."""

    def __init__(self, uri):
        self.path = self.host = None
        self.patience = 0       # see dial
        if '://' not in uri:
            self.path, self.name = uri, ''
            return
        u = parse_uri(uri)
        self.name = urllib.parse.unquote(u.path)[1:]
        if u.scheme == 'nbd+unix':
            self.path = find_socket(u)
        elif u.scheme == 'nbd':
            self.host, self.port = u.hostname, u.port or 10809
        if not self.path and not self.host:
            raise Error(f'{uri}: not a nbd:// or nbd+unix:// URI of a server')

    def negotiate(self, talk):
        """A new socket, and what talk(socket) returned."""
        if self.path:
            s = dial(socket.AF_UNIX, self.path, self.patience)
        else:
            s = dial(socket.AF_INET, (self.host, self.port), self.patience)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            answer = talk(s)
            s.settimeout(None)
        except BaseException:
            s.close()
            raise
        return s, answer

    def connect(self):
        """A socket after the handshake; self.size, self.flags and
        self.description."""
        s, (self.size, self.flags, self.description) = self.negotiate(
            lambda s: handshake(s, self.name))
        return s

    def choose(self):
        """Where no name was given, take the one that survives a restart."""
        if self.name:
            return
        s, names = self.negotiate(list_exports)
        s.close()
        if WRITETHROUGH in names:
            self.name = WRITETHROUGH


def receive(s, length):
    data = b''
    while len(data) < length:
        more = s.recv(length - len(data))
        if not more:
            raise Error('the server hung up')
        data += more
    return data


def hello(s):
    """Fixed newstyle."""
    magic, style, flags = struct.unpack('>QQH', receive(s, 18))
    if (magic, style) != (NBD_MAGIC, NBD_IHAVEOPT) \
       or not flags & NBD_FLAG_FIXED_NEWSTYLE:
        raise Error('not an NBD server, or one of the old style')
    flags &= NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES
    s.sendall(struct.pack('>I', flags))


def ask(s, opt, data=b''):
    """Send an option; the replies to it, each a kind and data, up to an
    ACK or an error."""
    s.sendall(struct.pack('>QII', NBD_IHAVEOPT, opt, len(data)) + data)
    while True:
        magic, answered, kind, length = struct.unpack('>QIII', receive(s, 20))
        if magic != NBD_REP_MAGIC or answered != opt or length > 65536:
            raise Error('the server does not keep to the protocol')
        yield kind, receive(s, length)
        if kind == NBD_REP_ACK or kind & NBD_REP_ERROR:
            return


def handshake(s, name):
    """NBD_OPT_GO: the export's size, flags and description, which may be
    empty."""
    hello(s)
    data = name.encode()
    data = struct.pack('>I', len(data)) + data
    data += struct.pack('>HH', 1, NBD_INFO_DESCRIPTION)
    export, description = None, ''
    for kind, data in ask(s, NBD_OPT_GO, data):
        if kind & NBD_REP_ERROR:
            raise Error('the server refused: '
                        + (data.decode(errors='replace') or hex(kind)))
        if kind == NBD_REP_INFO and len(data) >= 12 \
           and data[:2] == struct.pack('>H', NBD_INFO_EXPORT):
            export = struct.unpack('>QH', data[2:12])
        if kind == NBD_REP_INFO \
           and data[:2] == struct.pack('>H', NBD_INFO_DESCRIPTION):
            description = data[2:].decode(errors='replace')
    if export is None:
        raise Error('the server did not say the size of the export')
    return *export, description


def list_exports(s):
    """The names of the exports; none from a server that does not say."""
    hello(s)
    names = []
    for kind, data in ask(s, NBD_OPT_LIST):
        if kind == NBD_REP_SERVER and len(data) >= 4:
            length, = struct.unpack('>I', data[:4])
            names.append(data[4:4 + length].decode(errors='replace'))
    s.sendall(struct.pack('>QII', NBD_IHAVEOPT, NBD_OPT_ABORT, 0))
    return names


def find_address(uri):
    """(family, address) of a server, or None: only libnbd knows such URIs."""
    u = parse_uri(uri)
    if u.scheme in ('nbd+unix', 'nbds+unix'):
        path = find_socket(u)
        if not path:
            raise Error('a socket= is missing')
        return socket.AF_UNIX, path
    if u.scheme in ('nbd', 'nbds'):
        if not u.hostname:
            raise Error('no host')
        return socket.AF_INET, (u.hostname, u.port or 10809)
    return None


def name_address(family, s, address):
    """The same for each name of one server."""
    if family == socket.AF_UNIX:
        return 'unix ' + os.path.realpath(address)
    host, port = s.getpeername()[:2]
    if ipaddress.ip_address(host.split('%')[0]).is_loopback:
        host = 'localhost'
    return f'tcp {host} {port}'


def expect_greeting(s):
    """The first 18 bytes of an NBD server."""
    s.settimeout(GREETING_SECONDS)
    try:
        return receive(s, 18)
    except socket.timeout:
        pass
    # A control socket waits for a line, and answers any.  A slow NBD server
    # closes the connection because of it, but greets first.
    s.sendall(b'\n')
    s.settimeout(HANDSHAKE_SECONDS)
    try:
        greeting = s.recv(18, socket.MSG_PEEK)
        if greeting[:1] == b'{':
            raise Error('that is the control socket of an array, not its NBD '
                        'socket')
        return receive(s, 18)
    except socket.timeout:
        raise Error('it does not greet as an NBD server') from None


def greet(uri, seconds=0):
    """The address of the server at uri, once it has greeted."""
    found = find_address(uri)
    if found is None:
        return 'uri ' + uri
    family, address = found
    with dial(family, address, seconds) as s:
        name = name_address(family, s, address)
        magic, style, flags = struct.unpack('>QQH', expect_greeting(s))
        if magic != NBD_MAGIC:
            raise Error('it does not greet as an NBD server')
        if style == NBD_IHAVEOPT:
            try:
                s.sendall(struct.pack('>IQII', flags & NBD_FLAG_FIXED_NEWSTYLE,
                                      NBD_IHAVEOPT, NBD_OPT_ABORT, 0))
                receive(s, 20)
            except (OSError, Error):
                pass            # it has greeted
    return name


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


def why_another(export, size, description):
    """None if it may be what had this size and description before; else
    export has these again, and the error says why not."""
    now = export.size, export.description
    export.size, export.description = size, description
    if description and now[1] != description:
        return Error(f'the server there has {now[1] or "something else"}, not '
                     f'{description}')
    if now[0] < size or (now[0] > size and not description):
        return Error(f'the server has {now[0]} bytes now, not {size}')
    export.size = now[0]
    return None


def reconnect(netlink, index, export):
    """Wait for the server; give the kernel a new socket to it."""
    size, description = export.size, export.description
    said = None
    while True:
        # Also before the first try: the kernel takes a new socket only
        # to replace one that it knows to be dead.
        time.sleep(RETRY_SECONDS)
        try:
            s = export.connect()
            e = why_another(export, size, description)
            if e is None:
                break
            s.close()
        except (OSError, Error) as err:
            e = err
        if str(e) != said:
            said = str(e)
            log(f'waiting for the server: {said}')
    netlink.nbd(NBD_CMD_RECONFIGURE, attr_u32(NBD_ATTR_INDEX, index),
                attr_sockets([s]))
    log('connected again')
    if export.size != size:
        # Not before: that may wait for requests that are held back.
        try:
            netlink.nbd(NBD_CMD_RECONFIGURE, attr_u32(NBD_ATTR_INDEX, index),
                        attr_u64(NBD_ATTR_SIZE_BYTES, export.size))
            log(f'/dev/nbd{index} has {export.size} bytes now')
        except OSError as e:
            # Its users go on with the old size.
            log(f'/dev/nbd{index} can\'t have {export.size} bytes: {e}')
            export.size = size
    return s


def watch(netlink, index, export, sockets):
    """Replace each socket that dies, for ever.  Others may shut one down."""
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


def shut_down(sockets):
    """To the kernel and to watch it is as if the server had done it."""
    for s in sockets:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass                # it is dead already


def serve(netlink, index, export, sockets):
    """The process that stays: watch until SIGTERM, then detach."""
    signal.signal(signal.SIGTERM, on_sigterm)
    signal.signal(signal.SIGHUP, lambda *args: shut_down(sockets))
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


def set_resend(index):
    """The kernel's own is 30 s; then users wait as long after a restart."""
    try:
        with open(f'/sys/block/nbd{index}/queue/io_timeout', 'w') as f:
            print(RESEND_SECONDS * 1000, file=f)
    except OSError as e:
        log(f'/dev/nbd{index}: io_timeout: {e}')


def attach(args):
    netlink = Netlink()
    export = Export(args.uri)
    export.patience = args.patience
    export.choose()
    index, sockets = start(netlink, export, args.connections,
                           args.dead_timeout)
    export.patience = 0         # reconnect has its own
    if len(sockets) == 1:
        set_resend(index)
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
    commands.add_parser('detach').add_argument('device')
    p = commands.add_parser('attach')
    p.add_argument('--pid-file')
    p.add_argument('--dead-timeout', type=int, default=600)
    p.add_argument('--connections', type=int, default=1)
    for p in commands.add_parser('greet'), commands.add_parser('info'), p:
        p.add_argument('--no-wait', dest='patience', action='store_const',
                       const=0, default=START_SECONDS)
        p.add_argument('uri')
    args = parser.parse_args()
    try:
        if args.command == 'attach':
            return attach(args)
        if args.command == 'probe':
            Netlink().find_nbd()
            return 0
        if args.command == 'detach':
            index = int(args.device.removeprefix('/dev/nbd'))
            Netlink().nbd(NBD_CMD_DISCONNECT, attr_u32(NBD_ATTR_INDEX, index))
            return 0
        if args.command == 'greet':
            try:
                print(greet(args.uri, args.patience))
            except ConnectionRefusedError:
                raise Error('no server listens there') from None
            except OSError as e:
                raise Error(e.strerror or e) from None
            return 0
        export = Export(args.uri)
        export.patience = args.patience
        export.connect().close()
        print(f'size={export.size} flags={export.flags:#x}')
    except (OSError, Error) as e:
        sys.exit(f'nbd-netlink: {e}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
