# smart.py: what gpuraid status --verbose prints of disks, for test-smart.sh.
#
#   smart.py GPURAID FOLDER DISK...
#
# A server of its own, in FOLDER, answers; its members are the DISKs, then no
# disks.  Prints the lines on SMART.
#
# SPDX-License-Identifier: BSD-3-Clause

import importlib
import os
import socket
import subprocess
import sys
import threading

states = importlib.import_module('status-states')

program, folder, *disks = sys.argv[1:]
path = os.path.join(folder, 'control')
if os.path.exists(path):
    os.unlink(path)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(8)
status = states.status('members lost', slots={
    i: {'path': disk} for i, disk in enumerate(disks)} | {4: states.GONE})
status['members'][5]['path'] = folder
threading.Thread(target=states.serve, daemon=True,
                 args=(listener, [status])).start()
r = subprocess.run([program, 'status', '--verbose', path], capture_output=True,
                   text=True, timeout=100)
if r.stderr or r.returncode != 1:
    sys.exit(f'exit status {r.returncode}: {r.stderr}')
print(''.join(line + '\n' for line in r.stdout.splitlines()
              if line.startswith('   smart: ')), end='')
