#!/bin/bash
# test-cuda-plugin.sh: an array whose coder is CUDA, on the fake driver:
# from creation to rebuild, in the foreground and as a daemon, with a
# device that is lost; and what is refused.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-thread

source tests/functions.sh
need nbdkit nbdcopy
use_fake_cuda

cache=kernel-cache=$tmp/cache
unset "${!FAKE_CUDA_@}"


random=$tmp/random
dd if=/dev/urandom of="$random" bs=1M count=12 status=none

fill ()
{
  timeout 100 nbdcopy --flush "$random" "$uri" || fail "nbdcopy: to the array"
}

verify ()
{
  timeout 100 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: from the array"
  cmp "$random" "$tmp/back" || fail "$1: wrong data"
}

# The stripes on a member.
sum ()
{
  dd if="$1" bs=1M skip=1 count=3 status=none | sha256sum
}

# What the members hold, made by a CPU.
make_members 6 16M
create_array k=4 m=2 size=12M chunk=64K consistency=none
start_raid coder=isal
fill
stop_raid
expected=()
for f in "${members[@]}"; do
  expected+=("$(sum "$f")")
done

same_members ()
{
  local i
  for i in "${!members[@]}"; do
    [ "$(sum "${members[i]}")" = "${expected[i]}" ] ||
      fail "$1: member $i differs from the CPU's"
  done
}

launches ()
{
  [ "$(sed -n "s/^launches_${2:-0}=//p" "$1" 2>/dev/null | tail -n 1)" -gt 0 ]
}

# --- the same bytes, and devices do it

make_members 6 16M
create_array k=4 m=2 size=12M chunk=64K consistency=none
FAKE_CUDA_REPORT=$tmp/report start_raid coder=cuda "$cache"
fill
verify "coder=cuda"
stop_raid
same_members "coder=cuda"
launches "$tmp/report" || fail "coder=cuda launched nothing"
[ -n "$(ls "$tmp/cache")" ] || fail "no kernels were kept"

# --- degraded, and a rebuild

start_raid coder=cuda kernel-cache="$tmp/kernels"
fail_member 1
fail_member 4
verify "degraded"
replace_member 1 "$shm/new-1.img"
replace_member 4 "$shm/new-4.img"
wait_healthy
stop_raid
same_members "rebuilt"
[ -n "$(ls "$tmp/kernels")" ] || fail "kernel-cache=$tmp/kernels: nothing there"

# --- code=crs

make_members 6 16M
create_array k=4 m=2 size=12M chunk=64K consistency=none code=crs
start_raid coder=cuda kernel-cache="$tmp/kernels"
fill
fail_member 0
fail_member 3
verify "degraded, crs"
stop_raid
start_raid coder=isal
verify "crs, by the CPU"
stop_raid

# --- a device fails in the middle of it: one message, no error

# The first stripes that are written wait for the bitmap to be marked, all at
# once where the machine is busy, and then share two launches.
fill_until ()
{
  local i
  for ((i = 0; i < 20; i++)); do
    fill
    ! grep -q "$1" "$raid_log" || return 0
  done
  fail "no message: $1"
}

raid_flags=(-D gpuraid.cuda_fail_after=5)
make_members 6 16M
create_array k=4 m=2 size=12M chunk=64K consistency=none
start_raid coder=cuda kernel-cache=none
fill_until 'it is not used any more'
fill
verify "a failed device"
stop_raid
same_members "a failed device"
[ "$(grep -c 'it is not used any more' "$raid_log")" = 1 ] ||
  fail "not one message about the device that failed: $(cat "$raid_log")"

# Of two one goes on.  The second has something to do while the first does.
raid_flags=(-D gpuraid.cuda_fail_after=5 -D gpuraid.cuda_fail_device=1)
FAKE_CUDA_DEVICES=2 FAKE_CUDA_SLOW=2000 start_raid coder=cuda "$cache"
fill_until 'cuda:1 .*it is not used any more'
fill
verify "one of two"
stop_raid
! grep -q 'cuda:0 .*any more' "$raid_log" || fail "device 0 failed too"
raid_flags=()

# --- no kernel can be compiled: the CPU does it

make_members 6 16M
create_array k=4 m=2 size=12M chunk=64K consistency=none
FAKE_NVRTC_FAIL=1 start_raid coder=cuda kernel-cache=none
fill
verify "no kernels"
stop_raid
same_members "no kernels"
grep -q 'the process that compiled a kernel failed' "$raid_log" ||
  fail "no message about a kernel that was not compiled"

# --- gpus=

rm -f "$tmp/report"
FAKE_CUDA_DEVICES=3 FAKE_CUDA_REPORT=$tmp/report start_raid coder=cuda gpus=0,2 "$cache"
fill
stop_raid
launches "$tmp/report" 2 || fail "gpus=0,2: not 2"
! launches "$tmp/report" 1 || fail "gpus=0,2: 1 was used"

refused ()
{
  local text=$1
  shift
  refuse_raid "$@"
  grep -q "$text" "$raid_log" || fail "$*: not '$text': $(cat "$raid_log")"
  [ "$(grep -vc ' consistency=none: ' "$raid_log")" = 1 ] ||
    fail "$*: not one line"
}

export FAKE_CUDA_DEVICES=2
refused 'gpus=: there is no device 5 .*: leave it out' coder=cuda gpus=0,5
refused 'gpus=: there is no device 2' gpus=2
refused 'goes with coder=auto or coder=cuda' coder=isal gpus=1
refused 'numbers from 0 to 63' gpus=0,x
export FAKE_CUDA_DEVICES=0
refused 'coder=cuda: .*no CUDA.*coder=auto needs no' coder=cuda
unset FAKE_CUDA_DEVICES
FAKE_CUDA_ARCH=70 refused 'coder=cuda: .*7.5' coder=cuda

# Nothing is made before that is known.
FAKE_CUDA_DEVICES=0 timeout 60 nbdkit -f -U - "$plugin" dir="$tmp/none" \
  k=2 m=1 size=1M coder=cuda --run true 2>"$tmp/err" &&
  fail "a server with no device"
[ ! -e "$tmp/none" ] || [ -z "$(ls "$tmp/none")" ] ||
  fail "an array was made that can't be served"

# auto does without.
FAKE_CUDA_DEVICES=0 start_raid
verify "auto without a device"
stop_raid
start_raid "$cache"
fill
verify "auto"
stop_raid
same_members "auto"

# --- a device that is there, and does not start

export FAKE_CUDA_FAIL=cuMemHostRegister_v2:1
start_raid coder=cuda "$cache"
fill
verify "no device was started"
shows_it ()
{
  { "$gpuraid" status "$control" || :; } | grep -q "not used any more"
}
wait_for shows_it || fail "status does not show that no device was started"
stop_raid
unset FAKE_CUDA_FAIL
same_members "no device was started"

# --- a daemon

rm -f "$shm/pid" "$sock"
LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
  FAKE_CUDA_REPORT=$tmp/report-daemon \
  timeout 60 nbdkit -U "$sock" -P "$shm/pid" "${san_flags[@]}" "$plugin" \
  control="$control" coder=cuda "$cache" "${members[@]}" 2>>"$raid_log" ||
  fail "the daemon did not start"
wait_for test -s "$shm/pid" || fail "no daemon"
pid=$(cat "$shm/pid")
on_exit kill_ours "$pid"
fill
verify "a daemon"
kill "$pid"
timeout 60 tail -s 0.02 --pid="$pid" -f /dev/null || fail "the daemon did not end"
launches "$tmp/report-daemon" || fail "the daemon launched nothing"

# --- a scenario of the fault lab

OUT=$OUT SAN=$SAN timeout 100 scripts/fault-lab --quiet \
  --seconds 0.15 --dir "$shm" --seed 1 --key coder=cuda \
  --key kernel-cache="$tmp/kernels" kill-members ||
  fail "the fault lab with coder=cuda"
