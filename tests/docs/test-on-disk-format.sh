#!/usr/bin/env bash
# gpuraid test: the tables of docs/on-disk-format.md have no holes, and
# name the bytes where raidmap/ puts them.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

set -e
cd "$(dirname "$0")/../.."

/usr/bin/python3 - <<'PY'
import re
import sys

errors = 0


def complain(what):
    global errors
    errors += 1
    print("test-on-disk-format: " + what)


def enums(path):
    """Name to value of every 'NAME = expression,' of a .c file."""
    known = dict(SB_MAX_DEVICES=96, SB_MAX_LOST_GROWN=16,
                 SB_MAX_LOST_RESHAPED=15,
                 BITMAP_PAGE_WORDS=252)
    text = open(path).read()
    for name, expr in re.findall(r"^  ([A-Z0-9_]+) = ([^,]+),$", text, re.M):
        known[name] = eval(expr, {}, known)
    return known


# Tables, in order: the .c file, the prefix of its names, the length.
want = [
    ("superblock", "AT_", 4096),
    (None, None, 32),
    (None, None, 32),
    ("bitmap", "AT_", 4096),
    ("table", "AT_", 4096),
    ("journal", "RING_", 4096),
    ("journal", "REC_", 512),
    ("journal", "ENTRY_", 32),
]

# Magic and crc have the same place in all of journal.c.
journal_at = dict(magic="AT_MAGIC", crc="AT_CRC")
skip = ("reserved", "crcs")

tables = re.findall(r"^\| byte \| length \| field \|.*\n\|[-|]+\n((?:\|.*\n)+)",
                    open("docs/on-disk-format.md").read(), re.M)
if len(tables) != len(want):
    complain("%d tables, not %d" % (len(tables), len(want)))

nr_compared = 0
for table, (name, prefix, length) in zip(tables, want):
    at = 0
    names = enums("raidmap/%s.c" % name) if name else {}
    for row in table.splitlines():
        off, n, field = [c.strip() for c in row.split("|")[1:4]]
        where = "%s %s" % (name, field)
        if int(off) != at:
            complain("%s is at %s, after %d" % (where, off, at))
        at = int(off) + (int(n) if n.isdigit() else 0)
        if name is None or field in skip:
            continue
        key = prefix + field.upper()
        if name == "journal" and field in journal_at:
            key = journal_at[field]
        if names.get(key) != int(off):
            complain("%s is at %s, %s is %s" % (where, off, key,
                                                names.get(key)))
        nr_compared += 1
    if at != length:
        complain("a table of %s ends at %d, not %d" % (name, at, length))

print("%d tables, %d fields compared" % (len(tables), nr_compared))
if nr_compared < 50:
    complain("too few fields")
sys.exit(errors != 0)
PY
