#!/usr/bin/python3
# disconnect: tell the kernel's nbd driver to detach a device, as another program
# may, such as nbd-client -d.
#
#   tests/vm/disconnect.py NUMBER
#
# SPDX-License-Identifier: BSD-3-Clause

import socket
import struct
import sys

GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
NBD_CMD_DISCONNECT, NBD_ATTR_INDEX = 2, 1
NLM_F_REQUEST, NLM_F_ACK, NLMSG_ERROR = 1, 4, 2


def attribute(kind, data):
    padding = bytes(-len(data) % 4)
    return struct.pack('=HH', 4 + len(data), kind) + data + padding


def ask(sock, family, command, data, flags=0):
    """What follows the two headers of the first answer."""
    body = struct.pack('=BBH', command, 1, 0) + data
    sock.send(struct.pack('=IHHII', 16 + len(body), family,
                          NLM_F_REQUEST | flags, 1, 0) + body)
    reply = sock.recv(65536)
    kind = struct.unpack_from('=H', reply, 4)[0]
    if kind == NLMSG_ERROR:
        error = struct.unpack_from('=i', reply, 16)[0]
        if error:
            sys.exit(f'disconnect: error {-error}')
    return reply[20:]


sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
rest = ask(sock, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
           attribute(CTRL_ATTR_FAMILY_NAME, b'nbd\0'))
family = None
while rest and family is None:
    size, kind = struct.unpack_from('=HH', rest)
    if kind == CTRL_ATTR_FAMILY_ID:
        family = struct.unpack_from('=H', rest, 4)[0]
    rest = rest[(size + 3) & ~3:]
ask(sock, family, NBD_CMD_DISCONNECT,
    attribute(NBD_ATTR_INDEX, struct.pack('=I', int(sys.argv[1]))), NLM_F_ACK)
