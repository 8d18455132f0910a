#!/bin/bash
# test-journal.sh: with consistency=journal what was flushed survives a
# kill, and blocks in flight are old or new, whichever members are there
# afterwards: also where some were missing before.
#
# CHECKSUM=crc32c: with checksums too.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdinfo

# Blocks of the array have a number: how often they were written.  The log
# has "b NR" before a write of it and "f" after each flush.
cat >"$tmp/client.py" <<'EOF'
import random, struct, sys, nbd

what, uri, log, seed = sys.argv[1:5]
B = 4096
NR = 2000                       # blocks, of several lines

def content (b, n):
    return struct.pack ("<QQ", b, n) * (B // 16) if n else bytes (B)

h = nbd.NBD ()
h.connect_uri (uri)

def write ():
    r = random.Random (seed)
    count = history ()[2]
    with open (log, "a", buffering=1) as f:
        while True:
            for i in range (r.randrange (1, 20)):
                b = r.randrange (NR) if r.randrange (3) else r.randrange (8)
                nr = min (r.choice ([1, 1, 2, 16, 70]), NR - b)
                for c in range (b, b + nr):
                    count[c] = count.get (c, 0) + 1
                    f.write ("%d %d\n" % (c, count[c]))
                h.pwrite (b"".join (content (c, count[c])
                                    for c in range (b, b + nr)), b * B)
            h.flush ()
            f.write ("f\n")

# What is durable, what may be there, what was written last.
def history ():
    durable, maybe, last = {}, {}, {}
    for line in open (log):
        if line == "f\n":
            durable = dict (last)
            maybe = {}
        elif line.endswith ("\n"):
            b, n = map (int, line.split ())
            last[b] = n
            maybe.setdefault (b, []).append (n)
    return durable, maybe, last

# With "fix" it notes what is there as the only thing that may be.
def check ():
    durable, maybe, last = history ()
    found = {}
    for b in range (NR):
        got = bytes (h.pread (B, b * B))
        ok = [durable.get (b, 0)] + maybe.get (b, [])
        n = [n for n in ok if content (b, n) == got]
        if not n:
            sys.exit ("block %d is not one of %s: %r" % (b, ok, got[:16]))
        found[b] = n[0]
    if what == "fix":
        with open (log, "w") as f:
            for b in sorted (found):
                f.write ("%d %d\n" % (b, found[b]))
            f.write ("f\n")
    print ("%d blocks, %d flushes" % (NR, open (log).read ().count ("f\n")))

write () if what == "write" else check ()
EOF
log=$tmp/log
: >"$log"

client ()
{
  /usr/bin/python3 "$tmp/client.py" "$1" "$uri" "$log" "$SEED$n" ||
    fail "round $n, $1, ${#members[@]} members"
}

has_flushed ()
{
  grep -q f "$log" && [ "$(status_field counters.journal_commits)" -gt 0 ]
}

# write_and_kill: the server ends in the middle of it.
write_and_kill ()
{
  /usr/bin/python3 "$tmp/client.py" write "$uri" "$log" "$SEED$n" \
    2>"$tmp/client.log" &
  local pid=$!
  sleep "0.$((5 + n % 4))"
  kill -0 $pid || fail "the client ended: $(cat "$tmp/client.log")"
  wait_for has_flushed || fail "no flush"
  kill_raid
  wait $pid && fail "the client ended well"
  grep -q f "$log" || fail "no flush"
}

# without SLOT...: all but these
without ()
{
  local slot
  members=("${all[@]}")
  for slot; do
    unset "members[$slot]"
  done
  members=("${members[@]}")
}

make_members 6 32M
all=("${members[@]}")
n=0
start_raid k=4 m=2 consistency=journal "checksum=${CHECKSUM:-none}" \
  journal-size=1M size=64M create=missing
[ "$("$gpuraid" examine "${members[0]}" | grep -c journal)" -ge 1 ] ||
  fail "no journal"
for n in {1..4}; do
  write_and_kill
  # Read-only: any four are enough.
  raid_flags=(-r)
  for lost in "" "0 1" "2 5" "3 4"; do
    without $lost
    start_raid
    client check
    kill_raid
  done
  raid_flags=()
  without
  start_raid journal-size=1M
  client fix
  [ "$n" = 2 ] || client check
done

# With two missing there is no write hole.
kill_raid
for n in {5..8}; do
  without 1 4
  start_raid
  expect_state degraded
  write_and_kill
  start_raid
  client fix
  stop_raid
done

# They come back, and others are lost.
without
start_raid
nbdinfo "$uri" >/dev/null
wait_healthy
client check
stop_raid
without 0 5
start_raid
client check
stop_raid

# The size of the ring is checked like the rest.
without
LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
  timeout 30 nbdkit -U - "$plugin" journal-size=2M "${members[@]}" \
  --run true 2>"$tmp/err" && fail "another journal-size="
grep -q 'journal-size=2097152: but the array has journal-size=1048576' \
  "$tmp/err" || fail "$(cat "$tmp/err")"
