#!/usr/bin/python3
# wait-state: wait until an array's status is as a test wants it.
#
#   tests/wait-state.py CONTROL EXPRESSION
#
# EXPRESSION is Python: s is the status, m its members, c its scrub, l its last
# scrub.  Asks over one connection.  There is no limit while something
# changes in the status; after two minutes in which nothing did, four with a
# sanitizer, it prints the status and ends with 75: see late in functions.sh.
#
# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import socket
import sys
import time

STANDSTILL = 240 if os.environ.get('SAN') else 120
LATE = 75


def main():
    control, expression = sys.argv[1:]
    wanted = compile('(' + expression + ')', 'EXPRESSION', 'eval')
    server = socket.socket(socket.AF_UNIX)
    server.settimeout(STANDSTILL)
    last, since = None, time.monotonic()
    try:
        server.connect(control)
        replies = server.makefile('r')
        while True:
            server.sendall(b'{"command": "status"}\n')
            line = replies.readline()
            if not line:
                sys.exit(f'wait-state: the server has ended: not {expression}')
            s = json.loads(line)['status']
            names = {'s': s, 'm': s['members'], 'c': s['scrub'],
                     'l': s['last_scrub']}
            if eval(wanted, names):
                return
            if line != last:
                last, since = line, time.monotonic()
            if time.monotonic() > since + STANDSTILL:
                break
            time.sleep(0.02)
    except TimeoutError:
        pass
    except OSError as e:
        sys.exit(f'wait-state: the server has ended, {e.strerror}: '
                 f'not {expression}')
    print(f'wait-state: nothing changes, and not {expression}: {last}',
          file=sys.stderr)
    sys.exit(LATE)


main()
