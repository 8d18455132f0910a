#!/bin/bash
# test-force-back.sh: two members go on alone and one of them is lost: what is
# left has no k members that agree.  examine says why; degraded=force goes
# back, gives all that was not written since, and marks the other side.
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

old=$tmp/old
new=$tmp/new
noise $((4 << 20)) 1 >"$old"
noise $((1 << 20)) 2 >"$new"

make_members 3 16M
create_array k=2 m=1 chunk=16K size=8M >/dev/null
all=("${members[@]}")
start_raid
nbdcopy --flush "$old" "$uri"
stop_raid

# Without the third: the first quarter is new.
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
    "going back to epoch 2, with ${all[0]}, ${all[2]}"; do
  grep -qF -- "$words" "$tmp/text" || fail "examine: no $words: $(cat "$tmp/text")"
done
start_raid degraded=force
says "going back to epoch 2, with ${all[0]}, ${all[2]}"
says "missing: slot 1"

# What was not written since is all there.
/usr/bin/python3 - "$uri" "$old" "$new" <<'END' || fail "what it reads"
import sys
import nbd
h = nbd.NBD()
h.connect_uri(sys.argv[1])
old, new = open(sys.argv[2], 'rb').read(), open(sys.argv[3], 'rb').read()
for at in range(len(new), len(old), 65536):
    if h.pread(65536, at) != old[at:at + 65536]:
        sys.exit("wrong at %d" % at)
h.pwrite(b'x' * 65536, 0)
h.flush()
END
stop_raid

# The other side can't come back silently, with or without force.
members=("${all[@]}")
for key in degraded=allow degraded=force; do
  refuse_raid $key
  says "written in two ways"
done
members=("${all[0]}" "${all[2]}")
start_raid
expect_state degraded
rc=0
"$gpuraid" readd "$control" "${all[1]}" >"$tmp/out" 2>&1 || rc=$?
[ $rc = 1 ] || fail "readd took the other side: $(cat "$tmp/out")"
grep -q "written in two ways" "$tmp/out" || fail "$(cat "$tmp/out")"
"$gpuraid" replace --force "$control" 1 "${all[1]}"
wait_healthy
nbdcopy "$uri" "$tmp/read"
head -c 65536 "$tmp/read" | tr -d x | cmp - /dev/null ||
  fail "what was written since is lost"
stop_raid
