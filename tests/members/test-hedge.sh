#!/bin/bash
# test-hedge.sh: a member is 50 times slower than the others: its reads are
# decoded, within the budget; it stays active, and is read again when it is as
# fast as the others.
#
# run-tests: check=address,thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

size=$((64 << 20))
make_members 6 24M
create_array k=4 m=2 size=$size
# Only the loop of plain threads reads with calls that can be replaced.
raid_flags=(-D gpuraid.loop=2)
san_preload+=" $B/tests/slow-reads.so"

start_raid hedge=no
nbdcopy -- [ nbdkit --exit-with-parent pattern $size ] "$uri" || fail nbdcopy
stop_raid

be_slow () { echo "$2" > "${members[$1]}.delay"; }
# reads CONDITION: blocks at random, each compared, until the status, s, is so
reads ()
{
  timeout 120 /usr/bin/python3 - "$uri" $size "$gpuraid" \
    "$control" "$1" <<'PY' || fail "reads until $1"
import json, nbd, random, struct, subprocess, sys
uri, size, gpuraid, control, condition = sys.argv[1:]
size = int (size)
random.seed (1)

def status ():
    r = subprocess.run ([gpuraid, "status", "--json", control],
                        stdout=subprocess.PIPE)
    return json.loads (r.stdout)

h = nbd.NBD ()
h.connect_uri (uri)
while True:
    for i in range (50):
        off = random.randrange (size // 4096) * 4096
        got = h.pread (4096, off)
        assert got == struct.pack (">512Q", *range (off, off + 4096, 8)), off
    s = status ()
    if eval (condition):
        break
h.shutdown ()
assert s["state"] == "healthy", s["state"]
assert all (m["errors"] == 0 and m["state"] == "active" for m in s["members"])
c = s["counters"]
read = sum (m["read_bytes"] for m in s["members"])
# That of one hedge may be more.
assert c["hedge_bytes"] <= read * 0.05 + 500000, (c["hedge_bytes"], read)
assert c["hedges_won"] <= c["hedged_reads"], c
PY
}

for i in 0 1 2 3 4 5; do be_slow $i 2; done
start_raid cache=16M
reads 's["counters"]["read_ops"] > 300'
be_slow 1 100
reads 's["members"][1]["slow"]'
wait_for grep -q 'slot 1: .*: it is slow' "$raid_log" || fail "no message: $raid_log"
[ "$(status_field members.1.read_p95_ns)" -ge 80000000 ] ||
  fail "its latency is not shown"
"$gpuraid" metrics "$control" > "$tmp/metrics"
grep -q 'gpuraid_member_slow{.*slot="1".*} 1$' "$tmp/metrics" ||
  fail "metrics: not slow"

# It is hardly read for clients any more.  On a busy machine the others are as
# slow at times: then once more.
for n in {1..10}; do
  before=$(status_field members.1.read_ops)
  avoided=$(status_field counters.avoided_reads)
  reads "s['counters']['avoided_reads'] > $((avoided + 50))"
  after=$(status_field members.1.read_ops)
  [ $((after - before)) -gt 40 ] || break
  [ "$n" -lt 10 ] || fail "$((after - before)) reads of it"
done
"$gpuraid" status "$control" > "$tmp/status"
grep -q 'avoided [0-9]* reads' "$tmp/status" || fail "status: no such line"

be_slow 1 2
reads 'not s["members"][1]["slow"]'
stop_raid

# Without it every read waits.
start_raid cache=16M hedge=no
be_slow 1 30
reads 's["counters"]["read_ops"] > 200'
[ "$(status_field counters.avoided_reads)" = 0 ] || fail "hedge=no: avoided"
[ "$(status_field counters.hedged_reads)" = 0 ] || fail "hedge=no: hedged"
[ "$(status_field members.1.slow)" = false ] || fail "hedge=no: slow"
stop_raid

for bad in yes 0 5 999us 2m; do
  refuse_raid hedge=$bad
  grep -q 'auto, no, or a delay from 1ms to 1s' "$raid_log" ||
    fail "hedge=$bad: $(cat "$raid_log")"
done
