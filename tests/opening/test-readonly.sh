#!/bin/bash
# test-readonly.sh: nothing is written before the first connection that
# may write: nbdkit -r, a server without clients, and reading its status
# change no member; clean, degraded, with a stale member, and after a kill.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdinfo qemu-io nbdcopy

make_members 6 10M
create_array k=4 m=2
before=

# The content of the files, and when they were last written.
note ()
{
  before=$(stat -c '%n %s %b %y' "$shm"/*.img; sha256sum "$shm"/*.img)
}

check ()
{
  local now
  now=$(stat -c '%n %s %b %y' "$shm"/*.img; sha256sum "$shm"/*.img)
  [ "$now" = "$before" ] || fail "$1: a member was written"
}

# look MEMBER...: everything that a server can do without writing.
look ()
{
  local save=("${members[@]}")
  members=("$@")
  note
  start_raid
  [ "$(status_field state)" = "$state" ] ||
    fail "the state is $(status_field state), not $state"
  stop_raid
  check "$state, no client connects"

  raid_flags=(-r)
  start_raid
  nbdinfo "$uri" | grep -q 'is_read_only: true' || fail "not read-only"
  nbdcopy "$uri" "$tmp/now"
  cmp "$tmp/now" "$tmp/data" || fail "$state: wrong data with -r"
  nbdinfo --map "$uri" >/dev/null
  qemu-io -f raw -c 'write -P 1 0 4k' "$uri" >/dev/null 2>&1 &&
    fail "a write with -r"
  status_field members >/dev/null
  stop_raid
  raid_flags=()
  check "$state, with -r"
  members=("${save[@]}")
}

# write_all: new data, in every stripe
nr_written=0
write_all ()
{
  truncate -s "$(status_field size)" "$tmp/data"
  nr_written=$((nr_written + 1))
  noise $((6 << 20)) $nr_written |
    dd of="$tmp/data" bs=1M seek=3 conv=notrunc status=none
  nbdcopy "$tmp/data" "$uri"
}

truncate -s "$("$gpuraid" examine --json "${members[0]}" | field 0.size)" \
  "$tmp/data"
state=healthy
look "${members[@]}"

start_raid
write_all
stop_raid
look "${members[@]}"

# Two missing; then they come back, stale.
state=degraded
look "${members[@]:0:4}"
all=("${members[@]}")
members=("${members[@]:2}")
start_raid
write_all
stop_raid
look "${members[@]}"
look "${all[@]}"

# After a kill in the middle of writing, all there.
members=("${all[@]}")
start_raid
"$gpuraid" wait "$control" >/dev/null 2>&1 || :
qemu-io -f raw -c 'write 0 4k' "$uri" >/dev/null
timeout 60 "$gpuraid" wait "$control" || fail "not healthy again"
state=healthy
nbdcopy "$tmp/data" "$uri"
/usr/bin/python3 -m nbd -u "$uri" -c 'h.pwrite (b"\1" * 4096, 4096)' \
  -c 'h.flush ()' || fail "a write"
kill_raid
printf '\1%.0s' {1..4096} | dd of="$tmp/data" bs=4096 seek=1 conv=notrunc \
  status=none
look "${members[@]}"

# nbdkit -r: commands that change something are refused, also before the first
# connection; the reason is in the status.
note

# refused_command WHY COMMAND ARG...
refused_command ()
{
  local why=$1 cmd=$2
  shift 2
  if timeout 60 "$gpuraid" "$cmd" "$control" "$@" >"$tmp/out" 2>&1; then
    fail "$cmd $*: not refused"
  fi
  [ "$(cat "$tmp/out")" = "gpuraid: the array is read-only: $why" ] ||
    fail "$cmd $*: $(cat "$tmp/out")"
}

refused_commands ()
{
  refused_command "$1" fail 0
  refused_command "$1" fail nosuch
  refused_command "$1" replace 0 "$shm/new.img"
  refused_command "$1" readd 0
  refused_command "$1" scrub --repair
  [ ! -e "$shm/new.img" ] || fail "a refused command has made a file"
  [ "$(status_field read_only)" = "$1" ] ||
    fail "read_only is $(status_field read_only)"
  [ "$(status_field writable)" = false ] || fail "writable"
  "$gpuraid" status "$control" | grep -qF "read-only: $1" ||
    fail "the status does not say: $1"
  "$gpuraid" rate "$control" 5M || fail "rate"
  timeout 60 "$gpuraid" scrub "$control" || fail "a scrub that only reads"
  timeout 60 "$gpuraid" wait "$control" || fail "wait: status $?"
}

for flag in -r --readonly --read-only --read -vr; do
  raid_flags=("$flag")
  start_raid
  refused_commands "nbdkit was started with -r"
  stop_raid
done
raid_flags=(-r)
start_raid
nbdinfo "$uri" | grep -q 'is_read_only: true' || fail "not read-only"
refused_commands "nbdkit was started with -r"
stop_raid
check 'commands with -r'

# A word that is no option of nbdkit's.
raid_flags=(-e -r)
start_raid
[ "$(status_field read_only)" = null ] || fail "-e -r is not -r"
timeout 60 "$gpuraid" rate "$control" 5M || fail "rate"
nbdinfo "$uri" | grep -q 'is_read_only: false' || fail "-e -r: read-only"
stop_raid
raid_flags=()

# Too few that can be written: which one can't, and commands are refused.
if [ "$(id -u)" != 0 ]; then
  chmod 444 "${members[@]:3}"
else
  ro=$shm/read-only
  mkdir "$ro"
  if ! mount -t tmpfs none "$ro"; then
    echo "no mount here: no member that root can't write"
    exit 0
  fi
  on_exit umount "$ro"
  for i in 3 4 5; do
    cp --sparse=always "${members[i]}" "$ro/member-$i.img"
    members[i]=$ro/member-$i.img
  done
  mount -o remount,ro "$ro"
fi
note
start_raid
grep -qF "${members[3]} can't be written, so the array is read-only" \
  "$raid_log" || fail "no message"
nbdinfo "$uri" | grep -q 'is_read_only: true' || fail "not read-only"
refused_commands "${members[3]} can't be written"
stop_raid
check 'members that are not writable'
