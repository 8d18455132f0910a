#!/bin/bash
# test-cli-scrub: scrub of a running array and check of one that is not: what
# is wrong on the members is found, and with --repair made right.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy nbdinfo

size=$((24 << 20))

# spoil MEMBER BLOCK COUNT: of its data
spoil ()
{
  dd if=/dev/urandom of="${members[$1]}" bs=4096 count="$3" \
    seek=$((data_off / 4096 + $2)) conv=notrunc status=none
}

# expect EXPRESSION: of the status, as s, and its last scrub, as l
expect ()
{
  status_json >"$tmp/status.json" ||
    fail "status --json: status $?"
  /usr/bin/python3 - "$tmp/status.json" "$1" <<'PY' ||
import json, sys
s = json.load (open (sys.argv[1]))
l = s["last_scrub"]
c = s["counters"]
sys.exit (0 if eval ("(" + sys.argv[2] + ")") else 1)
PY
    fail "not so: $1: $(cat "$tmp/status.json")"
}

# check STATUS PART [OPTION]: gpuraid check says so, and ends so
check ()
{
  local rc=0

  timeout 60 "$gpuraid" check ${3:+"$3"} "${members[@]}" \
    >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc -eq "$1" ] ||
    fail "check: status $rc, not $1: $(cat "$tmp/out" "$tmp/err")"
  grep -qF -- "$2" "$tmp/out" || fail "no \"$2\" in: $(cat "$tmp/out")"
}

scrub ()
{
  "$gpuraid" scrub "$control" "$@" || fail "scrub $*: status $?"
}

compare_all ()
{
  timeout 60 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: failed"
  cmp -n "$size" "$tmp/data" "$tmp/back" || fail "the data is not the same"
}

noise $size >"$tmp/data"
make_members 5 24M
create_array k=3 m=2 size=$size consistency=journal checksum=crc32c
data_off=$("$gpuraid" examine --json "${members[0]}" | sed -n \
  's/.*"data_off": *\([0-9]*\).*/\1/p')

# ---- an array that was never written

check 0 "0 blocks were wrong"
start_raid
timeout 60 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"

# ---- running

scrub
wait_healthy
expect 's["scrub"] is None and l["complete"] and l["found"] == 0'
scrub --repair
wait_healthy
expect 'l["repair"] and l["found"] == l["repaired"] == 0'
rc=0
"$gpuraid" scrub "$control" stop 2>"$tmp/err" || rc=$?
[ $rc -eq 1 ] || fail "stop without a scrub: status $rc"
grep -q "no scrub is running: start one first" "$tmp/err" || fail "$(cat "$tmp/err")"
stop_raid

spoil 1 100 7
spoil 3 105 7
spoil 4 1000 1
start_raid
scrub
wait_healthy
expect 'l["found"] == 15 and l["repaired"] == 0 and not l["repair"]'
expect 's["state"] == "healthy" and s["reasons"] == ["wrong blocks"]'
rc=0
"$gpuraid" status "$control" >"$tmp/out" || rc=$?
[ $rc = 1 ] && grep -q "state: damaged, wrong blocks" "$tmp/out" ||
  fail "wrong blocks: status $rc: $(cat "$tmp/out")"
expect '[m["scrub_found"] for m in s["members"]] == [0, 7, 0, 7, 1]'
scrub start --repair
wait_healthy
expect 'l["found"] == l["repaired"] == 15 and l["lost_rows"] == 0'
expect 'c["corrupt_found"] == 30 and c["corrupt_repaired"] == 15'
timeout 10 "$gpuraid" status "$control" >"$tmp/out"
grep -q "scrub: .*: 15 wrong blocks, 15 repaired" "$tmp/out" ||
  fail "$(cat "$tmp/out")"
scrub
wait_healthy
expect 'l["found"] == 0'
compare_all
stop_raid

# ---- not running

check 0 "0 blocks were wrong"
! grep -q "in 0 rows\|of 0 rows" "$tmp/out" "$tmp/err" ||
  fail "words about nothing: $(cat "$tmp/out" "$tmp/err")"
spoil 0 300 3
sum=$(cat "${members[@]}" | md5sum)
check 1 "slot 0: 3 wrong, 0 repaired"
[ "$sum" = "$(cat "${members[@]}" | md5sum)" ] || fail "a member was written"
check 1 "slot 0: 3 wrong, 3 repaired" --repair
check 0 "0 blocks were wrong"
mv "${members[2]}" "$tmp/away"
check 1 "slot 2: not there, or not current"
mv "$tmp/away" "${members[2]}"
check 0 "0 blocks were wrong"
spoil 0 310 1
spoil 1 310 1
spoil 2 310 1
check 1 "1 rows are lost" --repair
check 1 "3 blocks were wrong, 0 of them were repaired"

# It is in use while a server runs.
start_raid
rc=0
"$gpuraid" check "${members[@]}" >"$tmp/out" 2>"$tmp/err" || rc=$?
[ $rc -eq 1 ] || fail "check of a running array: status $rc"
[ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
stop_raid
