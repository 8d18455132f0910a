#!/bin/bash
# test-grow-in-place: members that become longer while they are in use, files and
# disks: status says what could be gained, and grow uses it without a restart.
# Exports are asked by grow.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
source tests/nbd-servers.sh
need nbdcopy nbdinfo losetup

compare ()
{
  timeout 120 nbdcopy "$uri" "$tmp/back" || fail "$*: nbdcopy: failed"
  cmp "$tmp/data" "$tmp/back" || fail "$*: wrong data"
}

fill ()
{
  noise "$(nbdinfo --size "$uri")" "$1" >"$tmp/data"
  timeout 120 nbdcopy --flush "$tmp/data" "$uri" || fail "nbdcopy: failed"
}

# refused TEXT: in one line
refused ()
{
  local rc=0
  timeout 60 "$gpuraid" grow "$control" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "grow: status $rc, not 1: $(cat "$tmp/out")"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "grow: $(cat "$tmp/err")"
  grep -qF -- "$1" "$tmp/err" || fail "grow: no \"$1\" in $(cat "$tmp/err")"
}

# grows NAME: what the members have now is used, and stays after a crash
grows ()
{
  local old new
  old=$(status_field size)
  [ "${growable:-$(status_field growable)}" -gt $((8 << 20)) ] ||
    fail "$1: status does not see what could be gained"
  timeout 60 "$gpuraid" grow "$control" >"$tmp/out" || fail "$1: grow: failed"
  new=$(nbdinfo --size "$uri")
  [ "$new" -gt $((old + (8 << 20))) ] || fail "$1: from $old to $new"
  truncate -s "$new" "$tmp/data"
  compare "$1: after growing"
  fill "$1"
  kill_raid
  start_raid
  compare "$1: after a crash"
  fail_member 1
  compare "$1: degraded"
  replace_member 1 "$shm/new-$1"
  wait_healthy
  timeout 60 "$gpuraid" scrub "$control" || fail "scrub: failed"
  wait_healthy
  [ "$(status_field last_scrub.found)" = 0 ] || fail "$1: blocks are wrong"
}

# ---- files; also a second time, and where only some are longer

for kind in consistency=journal "consistency=none checksum=none"; do
  make_members 3 16M
  create_array k=2 m=1 $kind >/dev/null
  start_raid
  fill first
  truncate -s 32M "${members[0]}" "${members[1]}"
  refused "nothing to gain: ${members[2]}, the smallest, has 16777216 bytes"
  [ "$(status_field growable)" = 0 ] || fail "growable with one that is short"
  truncate -s 32M "${members[2]}"
  grows "files-${kind:12:4}"
  truncate -s 48M "${members[@]}"
  grows "again-${kind:12:4}"
  stop_raid
  "$gpuraid" check "${members[@]}" >"$tmp/out" || fail "check: $(cat "$tmp/out")"
  rm -f "$shm"/*.img "$shm"/new-*
done

# ---- exports: a server says a size once to each connection, so status does not
# know; also of one that takes no second client

make_members 3 16M
files=("${members[@]}")
for i in 0 1 2; do
  serve_on "behind$i" file "${files[i]}"
  members[i]=$(uri_of "behind$i")
done
create_array k=2 m=1 >/dev/null
start_raid
fill exports
refused "nothing to gain"
! grep -q "connection lost" "$raid_log" || fail "connected again without need"
truncate -s 32M "${files[@]}"

[ "$(status_field growable)" = 0 ] || fail "status asks servers"
# Clients go on meanwhile.
nbdsh -u "$uri" -c 'for i in range(100): h.pwrite(h.pread(65536, i << 16), i << 16)
h.flush()' &
client=$!
growable=9999999 grows exports
wait $client || fail "a client failed while exports were opened again"
expect_state healthy
stop_raid
"$gpuraid" check "${members[@]}" >"$tmp/out" || fail "check: $(cat "$tmp/out")"
rm -f "$shm"/*.img "$shm"/new-*

make_members 3 16M
files=("${members[@]}")
serve_on behind --filter=limit file "${files[1]}" limit=1
members[1]=$(uri_of behind)
create_array k=2 m=1 >/dev/null
start_raid
truncate -s 32M "${files[@]}"
refused "start this server again"
expect_state healthy
stop_raid
rm -f "$shm"/*.img

# ---- disks

(need_loop) || exit 0
make_members 3 16M
files=("${members[@]}")
for i in 0 1 2; do
  members[i]=$(losetup -f --show "${files[i]}") || skip "no loop devices: losetup"
  on_exit losetup -d "${members[i]}"
done
create_array k=2 m=1 >/dev/null
start_raid
fill disks
refused "nothing to gain"
truncate -s 32M "${files[@]}"
for i in 0 1 2; do
  losetup -c "${members[i]}"
done
grows disks
stop_raid
