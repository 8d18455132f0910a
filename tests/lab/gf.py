"""gpuraid: GF(2^8), the code rs and layout 0 once more, for the tests.

Written from the description of the format alone, slow and obvious, and
sharing nothing with gf/ and raidmap/: it is what they are compared with.

SPDX-License-Identifier: BSD-3-Clause
"""

POLY = 0x11d


def mul(a, b):
    """Shift and add, one bit at a time."""
    p = 0
    while b:
        if b & 1:
            p ^= a
        a <<= 1
        if a & 0x100:
            a ^= POLY
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
