#!/bin/bash
# test-readonly.sh: nothing is written before the first connection that
# may write: nbdkit -r, a server without clients, and reading its status
# change no member; clean, degraded, with a stale member, and after a kill.
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
