"""gpuraid: independent fields, codes and layout 0, for the tests.

Written from the description of the format alone, slow and obvious, and
independent of gf/ and raidmap/, which are compared with it.

SPDX-License-Identifier: BSD-3-Clause
"""

import functools

POLY = {4: 0x13, 8: 0x11d}
BLOCK = 4096


def mul(a, b, w=8):
    """Shift and add, one bit at a time."""
    p = 0
    while b:
        if b & 1:
            p ^= a
        a <<= 1
        if a >> w:
            a ^= POLY[w]
        b >>= 1
    return p


def power(a, n):
    p = 1
    for _ in range(n):
        p = mul(p, a)
    return p


def inv(a):
    assert a != 0
    return power(a, 254)


def generator(k, m):
    """The m parity rows, k coefficients each."""
    inv2 = inv(2)
    rows = []
    for p in range(m):
        if p == 0:
            row = [1] * k
        elif p == 1:
            row = [power(2, i) for i in range(k)]
        else:
            j = p - 1
            row = [inv(power(inv2, i) ^ power(2, j)) for i in range(k)]
            first = inv(row[0])
            row = [mul(x, first) for x in row]
        rows.append(row)
    return rows


_tables = {}


def times(coef, data):
    """Every byte of data times coef."""
    if coef == 1:
        return data
    if coef not in _tables:
        _tables[coef] = bytes(mul(coef, x) for x in range(256))
    return data.translate(_tables[coef])


def xor(a, b):
    return (int.from_bytes(a, 'little')
            ^ int.from_bytes(b, 'little')).to_bytes(len(a), 'little')


def encode(rows, data):
    """The parity chunks of the data chunks."""
    parity = []
    for row in rows:
        acc = bytes(len(data[0]))
        for coef, d in zip(row, data):
            if d.strip(b'\0'):
                acc = xor(acc, times(coef, d))
        parity.append(acc)
    return parity


# -- code crs -----------------------------------------------------------


@functools.lru_cache(None)
def inv_of(a, w):
    return next(b for b in range(1 << w) if mul(a, b, w) == 1)


@functools.lru_cache(None)
def bits_of(a, w):
    """Column x: the product with 2^x; bit l of it is row l."""
    return tuple(mul(a, 1 << x, w) for x in range(w))


@functools.lru_cache(None)
def ones_of(a, w):
    return sum(bin(column).count('1') for column in bits_of(a, w))


def generator_crs(k, m, w):
    """The m parity rows, k coefficients each."""
    elements = range(1, 1 << w)
    e = sorted(elements, key=lambda a: (ones_of(a, w), a))[:k]
    ys = [inv_of(a, w) for a in e]
    rows = []
    for x in set(elements) - set(ys) if m > 2 else ():
        plain = [inv_of(x ^ y, w) for y in ys]
        best = min((sum(ones_of(mul(s, a, w), w) for a in plain), s)
                   for s in elements)
        rows.append((best[0], x, [mul(best[1], a, w) for a in plain]))
    return ([[1] * k, e] + [row for _, _, row in sorted(rows)])[:m]


def planes_of(chunk, w):
    """Packet l of every block, as one number for each l."""
    n = BLOCK // w
    return [int.from_bytes(b''.join(
        chunk[at:at + n] for at in range(l * n, len(chunk), BLOCK)),
        'little') for l in range(w)]


def chunk_of(planes, length, w):
    n = BLOCK // w
    planes = [p.to_bytes(length // w, 'little') for p in planes]
    return b''.join(p[at:at + n] for at in range(0, length // w, n)
                    for p in planes)


def encode_crs(rows, data, w):
    """The parity chunks of the data chunks."""
    length = len(data[0])
    planes = [planes_of(d, w) for d in data]
    parity = []
    for row in rows:
        acc = [0] * w
        for coef, plane in zip(row, planes):
            for x, column in enumerate(bits_of(coef, w)):
                for l in range(w):
                    if column >> l & 1:
                        acc[l] ^= plane[x]
        parity.append(chunk_of(acc, length, w))
    return parity


# -- any code, and where it lies ----------------------------------------

_rows = {}


def parity_of(code, w, m, data):
    """The parity chunks of the data chunks."""
    k = len(data)
    key = code, w, k, m
    if key not in _rows:
        _rows[key] = generator(k, m) if code == 'rs' \
            else generator_crs(k, m, w)
    if code == 'rs':
        return encode(_rows[key], data)
    return encode_crs(_rows[key], data, w)


def slot_of(k, m, stripe, role):
    """Layout 0."""
    return (role + m - 1 - stripe) % (k + m)


def md_slot_of(k, m, stripe, role):
    """md's left-symmetric layouts, by the names of its raid5.c."""
    disks = k + m
    pd_idx = disks - 1 - stripe % disks
    if m == 1:
        return pd_idx if role == k else (pd_idx + 1 + role) % disks
    assert m == 2
    if role == k:
        return pd_idx
    if role == k + 1:
        return (pd_idx + 1) % disks
    return (pd_idx + 2 + role) % disks


def md_pq(data):
    """P and Q as md defines them: Q by Horner's rule, highest disk first."""
    p = bytes(len(data[0]))
    q = bytes(len(data[0]))
    for d in reversed(data):
        p = xor(p, d)
        q = xor(times(2, q), d)
    return p, q
