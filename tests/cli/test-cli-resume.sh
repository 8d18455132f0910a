#!/bin/bash
# test-cli-resume: a scrub of a running array goes on after the server was
# stopped or killed, and not if it was paused or stopped; gpuraid rate.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy nbdinfo

size=$((24 << 20))

# expect EXPRESSION: of the status s, its scrub c and its last scrub l
expect ()
{
  status_json >"$tmp/status.json" ||
    fail "status --json: status $?"
  /usr/bin/python3 - "$tmp/status.json" "$1" <<'PY' ||
import json, sys
s = json.load (open (sys.argv[1]))
c, l = s["scrub"], s["last_scrub"]
sys.exit (0 if eval ("(" + sys.argv[2] + ")") else 1)
PY
    fail "not so: $1: $(cat "$tmp/status.json")"
}

# Connect, as a client that may write.
touch_array ()
{
  nbdinfo --size "$uri" >/dev/null || fail "nbdinfo: status $?"
}

position ()
{
  status_field scrub.done
}

scrub ()
{
  timeout 30 "$gpuraid" scrub "$control" "$@" || fail "scrub $*: status $?"
}

rate ()
{
  timeout 30 "$gpuraid" rate "$control" "$@" || fail "rate $*: status $?"
}

noise $size >"$tmp/data"
make_members 5 24M
create_array k=3 m=2 size=$size consistency=journal checksum=crc32c
data_off=$("$gpuraid" examine --json "${members[0]}" | sed -n \
  's/.*"data_off": *\([0-9]*\).*/\1/p')
start_raid
timeout 60 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
stop_raid
# Near the beginning, and near the end.
for block in 20 2000; do
  dd if=/dev/urandom of="${members[1]}" bs=4096 count=3 conv=notrunc \
    seek=$((data_off / 4096 + block)) status=none
done

# ---- stopped in the middle

# It takes a minute.
start_raid rebuild-rate=128K
expect 's["rate_limit"] == 128 << 10'
[ "$(rate)" = "128 KiB/s of each member" ] || fail "$(rate)"
touch_array
scrub --repair
wait_state 'c["done"] > 1 << 18'
expect 'c["found"] == 3 and c["done"] < c["total"] / 2'
stop_raid

start_raid rebuild-rate=128K
expect 'c["interrupted"] and not c["paused"] and c["repair"]'
expect 'c["done"] > 1 << 18 and c["done"] < c["total"] and c["found"] == 3'
at=$(position)
sleep 0.5
[ "$(position)" = "$at" ] || fail "it goes on before it is written to"
"$gpuraid" wait "$control" || fail "wait: status $?"
timeout 10 "$gpuraid" status "$control" >"$tmp/out"
grep -q "goes on when the array is written to: 3 wrong" "$tmp/out" ||
  fail "$(cat "$tmp/out")"
touch_array
wait_state 'not c["interrupted"]'
log_has "scrub: it goes on at" || fail "nothing is said"

# ---- killed in the middle: where it was is saved every 5 seconds

# saved_past POSITION: in a superblock of each member, see on-disk-format.md
saved_past ()
{
  /usr/bin/python3 - "$1" "${members[@]}" <<'PY'
import os, sys
def saved (f, copy):
    f.seek (copy + 1000)
    return int.from_bytes (f.read (8), "little")
for path in sys.argv[2:]:
    with open (path, "rb") as f:
        end = os.path.getsize (path)
        if max (saved (f, copy) for copy in
                (0, 4096, end - 8192, end - 4096)) <= int (sys.argv[1]):
            sys.exit (1)
PY
}

wait_for saved_past "$at" || fail "where it is is not saved"
kill_raid
start_raid rebuild-rate=128K
expect 'c["interrupted"] and c["done"] > '"$at"
touch_array
rate max
expect 's["rate_limit"] == 0'
wait_healthy
expect 'c is None and l["complete"] and l["repair"]'
expect 'l["found"] == 6 and l["repaired"] == 6 and l["lost_rows"] == 0'
scrub
wait_healthy
expect 'l["found"] == 0'

# ---- paused: it stays so, also when killed

rate 128K
scrub
wait_state 'c["done"] > 1 << 18'
scrub pause
at=$(position)
kill_raid
start_raid
expect 'c["paused"] and c["interrupted"]'
touch_array
wait_state 'not c["interrupted"]'
sleep 0.5
expect 'c["paused"] and not c["interrupted"] and c["done"] > 0'
[ "$(position)" -le $((at + (1 << 20))) ] || fail "it did not pause"
timeout 10 "$gpuraid" status "$control" >"$tmp/out"
grep -q "paused: 0 wrong" "$tmp/out" || fail "$(cat "$tmp/out")"

# ---- check looks at everything, and leaves it as it is

stop_raid
timeout 60 "$gpuraid" check "${members[@]}" >"$tmp/out" ||
  fail "check: $(cat "$tmp/out")"
start_raid
expect 'c["paused"] and c["interrupted"]'
scrub resume
wait_healthy
expect 'c is None and l["complete"] and not l["repair"] and l["found"] == 0'

# ---- stopped by the user

rate 128K
scrub
wait_state 'c["done"] > 0'
scrub stop
kill_raid
start_raid
touch_array
expect 'c is None'
timeout 60 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: failed"
cmp -n "$size" "$tmp/data" "$tmp/back" || fail "the data is not the same"
stop_raid
