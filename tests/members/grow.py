# gpuraid: write and read all the time, until a file appears; every request must
# succeed, and every read have what was written.  What is then in the array is
# in the file of its content.
#
#   grow.py URI CONTENT STOP SEED
#
# SPDX-License-Identifier: BSD-3-Clause

import os
import random
import sys

import nbd

uri, content, stop, seed = sys.argv[1:]
r = random.Random(seed)
with open(content, 'rb') as f:
    data = bytearray(f.read())
h = nbd.NBD()
h.connect_uri(uri)
size = h.get_size()
nr = 0
while not os.path.exists(stop) or nr < 50:
    n = r.choice((512, 4096, 65536, 300000))
    off = r.randrange(0, size - n) // 512 * 512
    if r.randrange(3):
        data[off:off + n] = r.randbytes(n)
        h.pwrite(data[off:off + n], off,
                 nbd.CMD_FLAG_FUA if r.randrange(2) else 0)
    elif h.pread(n, off) != data[off:off + n]:
        sys.exit('wrong data at %d' % off)
    if nr % 40 == 0:
        h.flush()
    nr += 1
    if nr == 20:
        open(stop + '.begun', 'w').close()
if h.get_size() != size:
    sys.exit('the size changed for a client that was connected')
h.flush()
h.shutdown()
with open(content, 'wb') as f:
    f.write(data)
