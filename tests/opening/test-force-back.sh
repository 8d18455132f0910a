#!/bin/bash
# test-force-back.sh: two members go on alone and one of them is lost: what is
# left has no k members that agree.  examine says why; degraded=force goes
# back, and marks the other side.  What was not written since is all there;
# where something was, no block is wrong: not after a member that left with
# transactions in its journal, not after a crash, a replacement or a scrub.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

# says WORDS: the server did
says ()
{
  grep -qF -- "$1" "$raid_log" || fail "it does not say: $1"
}

# read_all FILE START: chunks of 64K from START on are those of FILE; those
# before may give EIO.  Prints how many did.
read_all ()
{
  /usr/bin/python3 - "$uri" "$1" "$2" <<'END' || fail "what it reads"
import errno
import sys
import nbd
h = nbd.NBD()
h.connect_uri(sys.argv[1])
data = open(sys.argv[2], 'rb').read()
lost = 0
for at in range(0, len(data), 65536):
    try:
        buf = h.pread(65536, at)
    except nbd.Error as e:
        if at >= int(sys.argv[3]) or e.errnum != errno.EIO:
            raise
        lost += 1
        continue
    if buf != data[at:at + 65536]:
        sys.exit("wrong at %d" % at)
print(lost)
END
}

# write_x LEN, with_x LEN: whole stripes from 0 on; what is then to be read.
write_x ()
{
  head -c $1 /dev/zero | tr '\0' x >"$tmp/x"
  nbdcopy --flush "$tmp/x" "$uri"
}

with_x ()
{
  cat "$tmp/x" <(tail -c +$(($1 + 1)) "$tmp/now") >"$tmp/last"
}

# wait_lost: what goes on has ended, and some blocks stay lost.
wait_lost ()
{
  local rc=0

  "$gpuraid" wait "$control" >"$tmp/out" 2>&1 || rc=$?
  [ $rc = 1 ] && grep -q "blocks lost" "$tmp/out" ||
    fail "wait: $rc: $(cat "$tmp/out")"
}

old=$tmp/old
new=$tmp/new
noise $((8 << 20)) 1 >"$old"
noise $((1 << 20)) 2 >"$new"
cat "$new" <(tail -c +$(((1 << 20) + 1)) "$old") >"$tmp/now"

make_members 3 16M
create_array k=2 m=1 chunk=16K size=8M >/dev/null
all=("${members[@]}")
start_raid
nbdcopy --flush "$old" "$uri"
stop_raid

# Without the third: the beginning is new.
members=("${all[0]}" "${all[1]}")
start_raid
nbdcopy --flush "$new" "$uri"
stop_raid

# Now the second is lost, and the third is found again.
members=("${all[0]}" "${all[2]}")
refuse_raid
says "degraded=force: it goes back to epoch 2"
"$gpuraid" examine "${members[@]}" | sed -n '/^together/,$p' >"$tmp/text"
for words in "${all[0]}  accepted epoch 4, current" \
    "${all[2]}  accepted epoch 2, out of date" \
    "the newest record is of epoch 4" "they do not open:" "2 slots needed" \
    "going back to epoch 2, with ${all[0]}, ${all[2]}" \
    "${all[2]} is behind: in regions that were written since then"; do
  grep -qF -- "$words" "$tmp/text" || fail "examine: no $words: $(cat "$tmp/text")"
done
start_raid degraded=force
says "going back to epoch 2, with ${all[0]}, ${all[2]}"
says "missing: slot 1"

# Of the region of 1 MiB that was written something is lost, and all else is
# there.
lost=$(read_all "$tmp/now" $((4 << 20)))
[ "$lost" -gt 0 ] || fail "what the third did not have is believed"
write_x 65536
says "noted as lost, in 1 region of 1048576 bytes"
stop_raid

# The other side can't come back silently, with or without force.
members=("${all[@]}")
for key in degraded=allow degraded=force; do
  refuse_raid $key
  says "written in two ways"
done
members=("${all[0]}" "${all[2]}")
start_raid
rc=0
"$gpuraid" readd "$control" "${all[1]}" >"$tmp/out" 2>&1 || rc=$?
[ $rc = 1 ] || fail "readd took the other side: $(cat "$tmp/out")"
grep -q "written in two ways" "$tmp/out" || fail "$(cat "$tmp/out")"
"$gpuraid" replace --force "$control" 1 "${all[1]}"
wait_lost
with_x 65536
read_all "$tmp/last" $((4 << 20)) >/dev/null
stop_raid

# The third leaves right after a flush, so that some of what it acknowledged is
# in its journal alone, and a little more is written without it.  Then the same.
make_members 3 16M
create_array k=2 m=1 chunk=64K size=8M >/dev/null
all=("${members[@]}")
start_raid
nbdcopy --flush "$old" "$uri"
"$gpuraid" fail "$control" 2
nbdcopy --flush "$new" "$uri"
stop_raid
members=("${all[0]}" "${all[2]}")
start_raid degraded=force
read_all "$tmp/now" $((8 << 20)) >/dev/null
write_x 131072
kill_raid
start_raid
with_x 131072
lost=$(read_all "$tmp/last" $((8 << 20)))
[ "$lost" -gt 0 ] || fail "after a crash the third is believed"
"$gpuraid" replace --force "$control" 1 "${all[1]}"
wait_lost
read_all "$tmp/last" $((8 << 20)) >/dev/null
"$gpuraid" scrub "$control" --repair
wait_lost
read_all "$tmp/last" $((8 << 20)) >/dev/null

# All is well once it is written again.
nbdcopy --flush "$old" "$uri"
"$gpuraid" scrub "$control"
wait_healthy
stop_raid
