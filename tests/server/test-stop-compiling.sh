#!/bin/bash
# test-stop-compiling.sh: a server that is asked to stop while a kernel is
# compiled stops as always: the compiler, whose own handler of SIGTERM ends
# its process, is not in the server's; one that hangs is killed.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: timeout=120 no-sanitizer

source tests/functions.sh
need nbdkit nbdcopy
use_fake_cuda
unset "${!FAKE_CUDA_@}"
cache=kernel-cache=$tmp/cache

random=$tmp/random
noise $((8 << 20)) >"$random"

# The generic kernels are kept from now on; each matrix needs its own, too.
make_members 3 16M
create_array k=2 m=1 size=8M chunk=64K
start_raid coder=cuda "$cache"
timeout 60 nbdcopy "$random" "$uri" || fail "nbdcopy: to the first array"
stop_raid

make_members 4 8M
create_array k=3 m=1 size=8M chunk=64K

# The child of our server: other tests have some too.
compiler ()
{
  pgrep -P "$raid_pid" -f "dump-plugin.*nbdkit-gpuraid-plugin"
}

# The kernel for encoding is wanted from the start on.  Its compilation ends when
# the server was told to stop.
export FAKE_NVRTC_WAIT=$tmp/go-on
start_raid coder=cuda "$cache"
timeout 60 nbdcopy "$random" "$uri" || fail "nbdcopy: to the array"
wait_for compiler || fail "no child compiles"
(sleep 0.5; touch "$tmp/go-on") &
stop_raid
unset FAKE_NVRTC_WAIT

# It was a clean stop: a member may be missing now.
rm "${members[0]}"
members=("${members[@]:1}")
start_raid coder=cuda "$cache"
timeout 60 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: from the array"
cmp "$random" "$tmp/back" || fail "wrong data"
stop_raid

# One that hangs.
make_members 5 8M
create_array k=3 m=2 size=8M chunk=64K
export FAKE_NVRTC_SLOW=1000000
start_raid coder=cuda "$cache"
wait_for compiler || fail "no child compiles"
child=$(compiler)
SECONDS=0
stop_raid
no_longer_than 20 || fail "the stop took $SECONDS s"
grep -q "it was killed" "$raid_log" || fail "not a word of the compiler's end"
! kill -0 "$child" 2>/dev/null || fail "the compiler is still there"
exit 0
