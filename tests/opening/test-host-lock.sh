#!/bin/bash
# test-host-lock: one array on one host is served once, whatever the names of
# its members are.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit nbdsh

make_members 3 16M
files=("${members[@]}")
create_array k=2 m=1

# The same members as exports: no lock of a file is in the way.
exports=()
for i in 0 1 2; do
  serve_on "m$i" file "${files[$i]}"
  exports+=("$(uri_of "m$i")")
done

# refused COMMAND...: in one line that says why
refused ()
{
  ! timeout 60 "$@" >"$tmp/out" 2>&1 || fail "$*: succeeded"
  grep -q "in use by another ${by:-server on this host}" "$tmp/out" ||
    fail "$*: $(cat "$tmp/out")"
  [ "$(grep -c "^nbdkit: error\|^nbdkit: gpuraid.*error\|^gpuraid:" "$tmp/out")" = 1 ] ||
    fail "$*: more than a line: $(cat "$tmp/out")"
}

start_raid
nbdsh -u "$uri" -c 'h.pwrite(b"1" * (1 << 20), 0)' -c 'h.flush()'
refused nbdkit -U - "$plugin" "${exports[@]}" --run true
refused nbdkit -r -U - "$plugin" "${exports[@]}" --run true
refused "$gpuraid" check "${exports[@]}"
# A process that shares only /run, or only the network name space.
if unshare --net true 2>/dev/null; then
  refused unshare --net nbdkit -U - "$plugin" "${exports[@]}" --run true
  refused unshare --mount --propagation private bash -c '
    mount -t tmpfs tmpfs /run && exec "$@"' - \
    nbdkit -U - "$plugin" "${exports[@]}" --run true
fi
nbdsh -u "$uri" -c 'assert h.pread(1 << 20, 0) == b"1" * (1 << 20)' \
  -c 'h.pwrite(b"2" * (1 << 20), 0)' -c 'h.flush()'
expect_state healthy

# One that was killed holds nothing, one that was stopped leaves nothing.
kill_raid
start_raid
nbdsh -u "$uri" -c 'assert h.pread(1 << 20, 0) == b"2" * (1 << 20)'
uuid=$(status_field uuid)
stop_raid
[ ! -e "/run/gpuraid/lock/$uuid" ] || fail "the lock file stays"

# Two loop devices of each file.
for i in 0 1 2; do kill_server "m$i"; done
(need_loop) || exit 0
one=() two=()
for f in "${files[@]}"; do
  for list in one two; do
    dev=$(losetup -f --show "$f") || exit 0
    on_exit losetup -d "$dev"
    eval "$list+=($dev)"
  done
done
members=("${one[@]}")
start_raid
by=process refused nbdkit -U - "$plugin" "${two[@]}" --run true
stop_raid
