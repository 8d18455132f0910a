#!/bin/bash
# test-scrub-dirty-page.sh: a page of the checksum table that is damaged in
# both places while a newer one is in memory, not stored yet: a scrub stores it
# in both places, so that it is right after a stop, too.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy

# Where the table begins is at 240 of a superblock.
page_place ()
{
  echo $(($(od -An -tu8 -j240 -N8 "${members[1]}") / 4096 + $1))
}

spoil ()
{
  dd if=/dev/urandom of="${members[1]}" bs=4096 count=1 \
    seek="$(page_place "$1")" conv=notrunc status=none
}

# A page is stored when nothing was written for a second.  So this client writes
# until it is told to stop.
cat >"$tmp/client.py" <<'PY'
import nbd, os, sys, time
uri, part, folder = sys.argv[1:]
h = nbd.NBD ()
h.connect_uri (uri)
h.pwrite (open (part, "rb").read (), 0)
h.flush ()
open (folder + "/flushed", "w")
while not os.path.exists (folder + "/stop"):
    h.pwrite (b"again" * 4096, 0)
    h.flush ()
    time.sleep (0.05)
h.shutdown ()
PY

# try PLACES: false if the page was stored before the scrub looked at it, as
# can happen if the client has to wait for a processor for so long.
try ()
{
  make_members 3 24M
  create_array k=2 m=1 size=4M consistency=journal checksum=crc32c
  start_raid
  timeout 60 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
  restart_raid
  # Pages have two places from now on, and this changes one of them.
  head -c 100000 "$tmp/data" >"$tmp/part"
  rm -f "$tmp/flushed" "$tmp/stop"
  /usr/bin/python3 "$tmp/client.py" "$uri" "$tmp/part" "$tmp" &
  client=$!
  wait_for test -e "$tmp/flushed" || fail "the client does not write"
  for p in $1; do
    spoil "$p"
  done
  "$gpuraid" scrub "$control" --repair || fail "scrub: status $?"
  wait_healthy
  touch "$tmp/stop"
  wait $client || fail "the client failed"
  found=$(status_field counters.corrupt_table_pages)
  if [ "$found" = 0 ]; then
    stop_raid
    return 1
  fi
  [ "$found" = 1 ] || fail "damaged in $1: $found pages were found"
  "$gpuraid" scrub "$control" --repair || fail "scrub: status $?"
  wait_healthy
  [ "$(status_field counters.corrupt_table_pages)" = 1 ] ||
    fail "damaged in $1: a second scrub found more"
  stop_raid
  timeout 60 "$gpuraid" check "${members[@]}" >"$tmp/out" ||
    fail "damaged in $1: check: $(cat "$tmp/out")"
}

noise $((4 << 20)) >"$tmp/data"
for places in 0 1 '0 1'; do
  for n in {1..10}; do
    try "$places" && continue 2
  done
  fail "damaged in $places: never found"
done
