#!/bin/bash
# test-cli-status: status, watch, fail, replace and wait on a running
# array, from healthy to degraded, rebuilt and back.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy nbdinfo

# check EXPRESSION: of the status, as s, and its members, as m
check ()
{
  status_json >"$tmp/status.json" ||
    fail "status --json: status $?"
  /usr/bin/python3 - "$tmp/status.json" "$1" <<'PY' ||
import json, sys
s = json.load (open (sys.argv[1]))
m = s["members"]
sys.exit (0 if eval ("(" + sys.argv[2] + ")") else 1)
PY
    fail "not so: $1: $(cat "$tmp/status.json")"
}

# Without what goes on by itself: I/O.
member_states ()
{
  status_json | /usr/bin/python3 -c 'import json, sys
for m in json.load (sys.stdin)["members"]:
    print (*(m[x] for x in ("slot", "path", "state", "errors")))'
}

# refused PART COMMAND...: exit status 1, one line with PART in it, and
# the array is as it was
refused ()
{
  local part=$1 rc=0 before after
  shift
  before=$(member_states)
  timeout 60 "$gpuraid" "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc -eq 1 ] || fail "gpuraid $*: status $rc: $(cat "$tmp/err")"
  [ ! -s "$tmp/out" ] || fail "gpuraid $*: said: $(cat "$tmp/out")"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
  grep -qF -- "$part" "$tmp/err" ||
    fail "gpuraid $*: no \"$part\" in: $(cat "$tmp/err")"
  after=$(member_states)
  [ "$before" = "$after" ] || fail "gpuraid $*: was refused and changed $after"
}

write_all ()
{
  timeout 60 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
}

compare_all ()
{
  timeout 60 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: failed"
  cmp -n "$size" "$tmp/data" "$tmp/back" || fail "the data is not the same"
}

size=$((40 << 20))
noise $size >"$tmp/data"
make_members 6 16M
# The server does not take out by itself what is deleted here.
raid_flags=(-D gpuraid.watch=0)
create_array k=4 m=2 size=$size

# ---- nothing is written before something has to be

sum=$(cat "${members[@]}" | md5sum)
start_raid
[ "$(stat -c %a "$control")" = 600 ] || fail "the socket's mode is not 600"
check 's["writable"] is False and s["state"] == "healthy"'
wait_healthy
refused "no such member (gpuraid status lists them)" fail "$control" /nosuch
refused "(gpuraid status lists them)" fail "$control" 6
truncate -s 1M "$shm/small"
refused "name a larger one" replace "$control" 0 "$shm/small"
[ "$sum" = "$(cat "${members[@]}" | md5sum)" ] || fail "a member was written"

# ---- healthy: every field

write_all
check '[s[x] for x in ("state", "k", "m", "chunk", "code")]
       == ["healthy", 4, 2, 65536, "rs"]'
check "s['size'] == $size and s['epoch'] > 0 and s['writable'] is True"
check 'len (s["uuid"]) == 36 and s["coder"] in ("simd", "isal")'
check 's["rebuild"] is None and s["scrub"] is None'
check 's["resync"] is None or s["resync"]["total"] > 0'
check '[(x["slot"], x["state"], x["errors"]) for x in m]
       == [(i, "active", 0) for i in range (6)]'
check "[x['path'] for x in m] == '${members[*]}'.split ()"
check "s['counters']['write_bytes'] == $size"
check 's["counters"]["corrupt_found"] == s["counters"]["corrupt_repaired"] == 0'
check 's["counters"]["journal_commits"] > 0'
check 'sum (s["counters"]["coder_bytes"].values ()) > 0'
check 's["counters"]["coder_bytes"]
       == {x["name"]: x["bytes"] for x in s["engines"]}'
check 'all (x["failed"] is None for x in s["engines"])'
timeout 30 "$gpuraid" status "$control" >"$tmp/out"
! grep -q "failed:" "$tmp/out" || fail "status: $(cat "$tmp/out")"
grep -q "coded by" "$tmp/out" || fail "status: $(cat "$tmp/out")"
grep -q "state: healthy (2 members may fail)" "$tmp/out" ||
  fail "status: $(cat "$tmp/out")"
wait_healthy

# ---- fail: by slot, by a relative path; never below k

fail_member 2
expect_state degraded
rm "${members[4]}"
(cd "$shm" && timeout 60 "$gpuraid" fail "$control" "member-04.img") ||
  fail "a member whose file is gone does not answer to its path"
# The array may have noticed that first, or another command been quicker.
for which in 4 "${members[4]}" "$(status_field members.4.uuid)"; do
  out=$(timeout 60 "$gpuraid" fail "$control" "$which" 2>&1) ||
    fail "fail, of one that is out: status $?: $out"
  [ "$out" = "$which is out already" ] || fail "fail, of one that is out: $out"
done
check '[x["state"] for x in m]
       == ["active", "active", "failed", "active", "failed", "active"]'
check "m[4]['path'] == '${members[4]}'"
refused "would remain: readd or replace one first" fail "$control" 0
refused "" wait "$control"
compare_all

# What each member did: as much was written to it as it holds of the array.
check "all (x['write_bytes'] >= $size / 4 and x['flush_ops'] > 0
            and x['write_ns'] > 0 and x['flush_ns'] > 0 for x in m)"

# ---- replace

refused "uses it already: name another" replace "$control" 2 "${members[0]}"
refused "uses it already: name another" replace --force "$control" 2 "${members[0]}"
ln "${members[0]}" "$shm/link"
refused "uses it already: name another" replace --force "$control" 2 "$shm/link"
mkdir "$shm/folder"
refused "folder: is a directory, not a file or disk: name another" \
  replace --force "$control" 2 "$shm/folder"
truncate -s 32M "$shm/used"
mkfs.ext4 -qF "$shm/used"
refused "(--force takes it, and what is on it is lost)" \
  replace "$control" 2 "$shm/used"

(cd "$shm" && timeout 60 "$gpuraid" replace "$control" 4 new-4) ||
  fail "replace by a relative path"
[ "$(stat -c %s "$shm/new-4")" = $((16 << 20)) ] || fail "new-4: its size"
timeout 60 "$gpuraid" replace --force "$control" "${members[2]}" \
  "$shm/used" || fail "replace --force"
wait_healthy
members[4]=$shm/new-4
members[2]=$shm/used
check "[x['path'] for x in m] == '${members[*]}'.split ()"
check 's["rebuild"] is None and s["counters"]["rebuilt_bytes"] > 0'
compare_all

# ---- a member that is active: both entries while the copy runs

replace_member 0 "$shm/new-0"
wait_healthy
check "len (m) == 6 and m[0]['path'] == '$shm/new-0'"

# ---- watch ends with the server

command timeout 600 "$gpuraid" watch "$control" >"$tmp/watch" &
watch_pid=$!
wait_for grep -q healthy "$tmp/watch" || fail "watch says nothing"
stop_raid
wait "$watch_pid" || fail "watch: status $?"
grep -q "the server has gone" "$tmp/watch" || fail "watch: $(cat "$tmp/watch")"
[ ! -e "$control" ] || fail "the socket is still there"
for c in status watch wait "fail 0" "replace 0 $shm/x"; do
  set -- $c
  ! timeout 10 "$gpuraid" "$1" "$control" "${@:2}" 2>"$tmp/err" ||
    fail "$c without a server: exit status 0"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
done

# ---- a dead socket is replaced, a live one and other things are not

start_raid
compare_all
check "sum (x['read_bytes'] for x in m) >= $size"
check 'all (x["read_ns"] > x["read_ops"] > 0 for x in m)'
check "[x['path'] for x in m] == '${members[*]}'.split ()"
kill_raid
[ -S "$control" ] || fail "no dead socket to replace"
start_raid
expect_state healthy

# ---- a rebuild waits for a client that may write, and wait does not

fail_member 1
stop_raid
raid_flags=(-r)
start_raid
refused "read-only: nbdkit was started with -r" fail "$control" /nosuch
check 's["state"] == "degraded" and m[1]["state"] == "failed"'
refused "the array is degraded" wait "$control"
stop_raid
