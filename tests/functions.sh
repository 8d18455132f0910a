# gpuraid: shared by the script tests.
#
# Source it from the root of the tree.  Gives a temporary folder on disk
# and one in memory, members, a server, and cleans up at the end.
# Has no expectations: each test has its own.
#
# In:  OUT   where the plugin and the command are (default: here)
#      B     the build folder (default: build)
#      SAN   the sanitizers they were built with, if any
# Out: tmp shm           folders, removed at the end
#      members           the members, an array in order of slots
#      sock uri control  of the server that start_raid starts
#
# SPDX-License-Identifier: BSD-3-Clause

set -e
set -o pipefail

# nbdsh and python3-libnbd belong to the system's own python3.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

OUT=$(realpath "${OUT:-.}")
B=$(realpath -m "${B:-build}")
SAN=${SAN:-}
plugin=$OUT/nbdkit-gpuraid-plugin.so
gpuraid=$OUT/gpuraid
tools=$B/tests/tools

tmp=$(mktemp -d "${TMPDIR:-/tmp}/gpuraid-test.XXXXXX")
shm=$(mktemp -d /dev/shm/gpuraid-test.XXXXXX)
members=()
sock=$shm/sock
uri="nbd+unix:///?socket=$sock"
control=$shm/control
raid_log=$tmp/nbdkit.log
raid_pid=
at_exit=()

# What is noted on this host of the arrays: see array/create/known.h.
export GPURAID_STATE_DIR=$tmp/notes-of-host

# SEED is the same at every run, unless it is given: a number, or random.
SEED=${SEED:-1}
if [ "$SEED" = random ]; then
  SEED=$RANDOM
fi

# noise LEN [NUMBER]: bytes without a pattern, the same for the same SEED.
noise ()
{
  /usr/bin/python3 -c 'import random, sys
r = random.Random(sys.argv[2])
for n in [1 << 20] * (int(sys.argv[1]) >> 20) + [int(sys.argv[1]) % (1 << 20)]:
    sys.stdout.buffer.write(r.randbytes(n))' "$1" "$SEED ${2:-}"
}

# flip FILE OFFSET [MASK]: the bits of MASK (all) of one byte.  A byte that is
# written may be there already; a byte that is flipped differs.
flip ()
{
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  printf "\\x$(printf %x $((byte ^ ${3:-255})))" |
    dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# fail WHY...: ends the test.  If it follows from a limit that ran out, see
# timeout and wait_for, the test is late, which is a status of its own: run-tests
# runs it again when nothing else runs.
fail ()
{
  echo "$0: $*" >&2
  if [ -s "$raid_log" ]; then
    echo "--- the server's last words:" >&2
    tail -n 40 "$raid_log" >&2
  fi
  local log
  for log in "$tmp"/*.log; do
    [ -s "$log" ] && [ "$log" != "$raid_log" ] || continue
    echo "--- the last words of ${log##*/}:" >&2
    tail -n 5 "$log" >&2
  done
  [ ! -s "$tmp/late" ] || late
  exit 1
}

late ()
{
  echo "$0: late: $* $(cat "$tmp/late" 2>/dev/null)" >&2
  # What a sanitizer found is no matter of time.
  grep -E '(ERROR|WARNING): [A-Za-z]+Sanitizer|runtime error:' -s "$raid_log" >&2 &&
    exit 1
  exit 75
}

skip ()
{
  echo "$0: skipped: $*" >&2
  exit 77
}

# is_ours PID: was it started by this test, and is still there?  The numbers come
# round within a minute when many tests run: then it is of another test.  A child
# that has not called exec yet has the environment that this shell began with;
# nothing else gets its number until this shell has waited for it.
export GPURAID_TEST=$shm
is_ours ()
{
  grep -qszxF "GPURAID_TEST=$shm" "/proc/$1/environ" ||
    grep -qsx "PPid:[[:space:]]*$$" "/proc/$1/status"
}

# kill_ours PID
kill_ours ()
{
  ! is_ours "$1" || kill -9 "$1"
}

# on_exit COMMAND...: run at the end, the newest first.
on_exit ()
{
  at_exit=("$(printf '%q ' "$@")" "${at_exit[@]}")
}

cleanup ()
{
  local rc=$? c
  trap - EXIT
  # A child that is killed before it calls exec comes here too.
  [ "$BASHPID" = $$ ] || exit $rc
  set +e
  for c in "${at_exit[@]}"; do
    eval "$c" >/dev/null 2>&1
  done
  if [ -n "$raid_pid" ]; then
    kill_ours "$raid_pid"
    wait "$raid_pid" 2>/dev/null
  fi
  if [ $rc -eq 124 ] && [ -s "$tmp/late" ]; then
    echo "$0: late: $(cat "$tmp/late")" >&2     # errexit ended it
    rc=75
  fi
  if [ -n "$KEEP" ] && [ $rc -ne 0 ]; then
    echo "$0: kept: $tmp $shm" >&2
  else
    rm -rf "$tmp" "$shm"
  fi
  exit $rc
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# A program of a package that scripts/deps installs: missing is a failure.
need ()
{
  local p
  for p in "$@"; do
    command -v "$p" >/dev/null || fail "$p is not installed: run scripts/deps"
  done
}

# A feature of the kernel: missing is a skip.
need_fuse ()
{
  need nbdfuse fusermount3
  [ -w /dev/fuse ] || skip "no /dev/fuse"
}

need_loop ()
{
  local dev
  need losetup
  [ "$(id -u)" = 0 ] || skip "not root: no loop devices, no mount"
  dev=$(losetup -f 2>/dev/null) || skip "no loop devices"
  [ -b "$dev" ] || skip "no loop devices"
}

# The driver and the run-time compiler of tests/fake-cuda/ from now on, for
# the server and the command; tests/fake-cuda/settings.c lists FAKE_CUDA_*.
use_fake_cuda ()
{
  local dir=build/tests/fake-cuda
  [ -e "$dir/libcuda.so.1" ] || fail "no $dir/libcuda.so.1: run make"
  export LD_LIBRARY_PATH=$PWD/${FAKE_CUDA_OLD:+$dir/old:$PWD/}$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# wait_for COMMAND...: until the command succeeds.  The limit is for what hangs.
patience=120
wait_for ()
{
  local end=$((SECONDS + patience * slow))
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then
      echo "wait_for $*" >>"$tmp/late"
      return 124
    fi
    sleep 0.05
  done
}

# timeout SECONDS COMMAND...: like timeout(1), for what hangs otherwise.  Not in the
# background, where $! is that of a shell: command timeout.
timeout ()
{
  local limit=$(($1 * slow)) rc=0
  shift
  command timeout "$limit" "$@" || rc=$?
  [ $rc -ne 124 ] || echo "timeout $limit $*" >>"$tmp/late"
  return $rc
}

# Has each thread of this process stopped, after SIGSTOP?
has_stopped ()
{
  ! grep -v '^State:.*T (stopped)' <(grep -h '^State:' "/proc/$1/task"/*/status) \
    >/dev/null
}

# no_longer_than NR: has it been at most NR seconds since SECONDS=0?  Where
# processes wait for a processor a second counts for less, ten times at most.
no_longer_than ()
{
  local nr=$SECONDS limit

  limit=$(awk -v nr="$(($1 * slow))" -v cpus="$(nproc)" '{
      times = $1 / cpus
      times = times < 1 ? 1 : times > 10 ? 10 : times
      print int (nr * times) }' /proc/loadavg)
  [ $nr -le "$limit" ] || {
    echo "$nr s, not $limit" >>"$tmp/late"
    return 1
  }
}

# make_members NR SIZE [FOLDER]: sparse files of that size, in memory.
make_members ()
{
  local dir=${3:-$shm} i f
  members=()
  for ((i = 0; i < $1; i++)); do
    f=$(printf '%s/member-%02d.img' "$dir" "$i")
    rm -f "$f"
    truncate -s "$2" "$f"
    members+=("$f")
  done
}

# create_array KEY=VALUE...: on ${members[@]}
create_array ()
{
  timeout 60 "$gpuraid" create "$@" "${members[@]}" ||
    fail "gpuraid create $*: failed"
}

# The loop that the thread sanitizer supports, see -D gpuraid.loop.
san_preload=
san_flags=()
# tests/preload/first-malloc.c says why there are two.
case $SAN in
  *address*)
    san_preload="$(gcc -print-file-name=libasan.so) $B/tests/first-malloc.so" ;;
  *thread*)
    san_preload="$(gcc -print-file-name=libtsan.so) $B/tests/first-malloc.so"
    san_flags=(-D gpuraid.loop=2) ;;
esac
# A sanitizer's finding ends the server with a status that stop_raid sees.
# nbdkit itself frees little at exit, so leaks are for the unit tests.
san_asan="detect_leaks=0:${ASAN_OPTIONS:-}"
san_tsan="exitcode=66:${TSAN_OPTIONS:-}"
# A sanitizer build is slower: more patience, less work.
slow=1
[ -z "$SAN" ] || slow=4

# Where the server listens, if not on $sock.
raid_listen=()

# run_server FLAG... -- ARG...: nbdkit in the background, no waiting.
run_server ()
{
  local listen=("${raid_listen[@]}")

  [ ${#listen[@]} -gt 0 ] || listen=(-U "$sock")
  rm -f "$sock" "$shm/pid"
  : > "$raid_log"
  LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
    nbdkit -f "${listen[@]}" -P "$shm/pid" "${san_flags[@]}" "${raid_flags[@]}" \
    "$plugin" control="$control" "$@" >>"$raid_log" 2>&1 &
  raid_pid=$!
}

raid_is_up ()
{
  [ -s "$shm/pid" ] || ! kill -0 "$raid_pid" 2>/dev/null
}

# start_raid [KEY=VALUE...]: serve ${members[@]}; flags for nbdkit in
# raid_flags.  Returns when clients can connect.
raid_flags=()
start_raid ()
{
  run_server "$@" "${members[@]}"
  wait_for raid_is_up ||
    fail "start_raid $*: neither up nor gone"
  [ -s "$shm/pid" ] || fail "start_raid $*: the server did not start"
}

# refuse_raid [KEY=VALUE...]: the server must report why and exit.
refuse_raid ()
{
  local rc=0
  run_server "$@" "${members[@]}"
  wait_for raid_is_up || fail "refuse_raid $*: neither up nor gone"
  [ ! -s "$shm/pid" ] || fail "refuse_raid $*: the server started"
  wait "$raid_pid" || rc=$?
  raid_pid=
  [ $rc -ne 0 ] || fail "refuse_raid $*: exit status 0"
  [ -s "$raid_log" ] || fail "refuse_raid $*: not a word"
}

# SIGTERM, like an administrator; its status counts.
stop_raid ()
{
  local rc=0
  is_ours "$raid_pid" && kill "$raid_pid" || fail "stop_raid: the server is not there any more"
  timeout 60 tail -s 0.02 --pid="$raid_pid" -f /dev/null ||
    fail "stop_raid: it is still there"
  wait "$raid_pid" || rc=$?
  raid_pid=
  [ $rc -eq 0 ] || fail "stop_raid: the server's exit status was $rc"
}

# SIGKILL, like a power cut, except for the page cache.
kill_raid ()
{
  is_ours "$raid_pid" && kill -9 "$raid_pid" || fail "kill_raid: the server is not there any more"
  wait "$raid_pid" 2>/dev/null || :
  raid_pid=
}

restart_raid ()
{
  stop_raid
  start_raid "$@"
}

# field NAME[.NAME...] < JSON: one value, strings bare, null as "null".
field ()
{
  /usr/bin/python3 -c '
import json, sys
v = json.load (sys.stdin)
for n in sys.argv[1].split ("."):
    v = v[int (n) if isinstance (v, list) else n]
print (v if isinstance (v, str) else json.dumps (v))' "$1"
}

# Whatever the state is, which is also in the exit status.
status_json ()
{
  timeout 30 "$gpuraid" status --json "$control" || [ $? -le 2 ]
}

# status_field state; status_field members.0.state
status_field ()
{
  status_json | field "$1"
}

# wait_state EXPRESSION: see tests/wait-state.py
wait_state ()
{
  local rc=0
  /usr/bin/python3 tests/wait-state.py "$control" "$1" || rc=$?
  [ $rc -ne 75 ] || echo "wait_state $1" >>"$tmp/late"
  [ $rc -eq 0 ] || fail "wait_state: status $rc"
}

# log_has TEXT: the array's server says so.  A thread of its own writes the log, so
# the line may come a moment after what it tells.
log_has ()
{
  wait_for grep -qF -- "$1" "$raid_log"
}

expect_state ()
{
  local s
  s=$(status_field state)
  [ "$s" = "$1" ] || fail "the array is $s, not $1"
}

fail_member ()
{
  timeout 60 "$gpuraid" fail "$control" "$1" || fail "gpuraid fail $1: failed"
}

# replace_member SLOT NEW: and let the replacement take its place in members
replace_member ()
{
  timeout 60 "$gpuraid" replace "$control" "$1" "$2" ||
    fail "gpuraid replace $1: failed"
  members[$1]=$2
}

wait_healthy ()
{
  timeout 120 "$gpuraid" wait "$control" ||
    fail "gpuraid wait: status $?"
  expect_state healthy
}

# mount_device: the array as a block device, in $device, through nbdfuse
# and a loop device, which every kernel with FUSE has.
mount_device ()
{
  mkdir -p "$shm/fuse"
  nbdfuse "$shm/fuse/disk" "$uri" >>"$tmp/nbdfuse.log" 2>&1 &
  fuse_pid=$!
  on_exit fusermount3 -uz "$shm/fuse"
  wait_for test -f "$shm/fuse/disk" || fail "nbdfuse did not start"
  device=$(losetup -f --show "$shm/fuse/disk") || skip "no loop devices: losetup failed"
  on_exit losetup -d "$device"
}

unmount_device ()
{
  losetup -d "$device"
  wait_for fusermount3 -u "$shm/fuse" || fail "fusermount3 -u failed"
  wait "$fuse_pid" || :
}

# churn SLOT...: until churn_stop, members fail and are rebuilt, one after
# the other, so that a test that runs meanwhile meets every state.
churn ()
{
  rm -f "$tmp/churn-stop"
  (
    trap - EXIT
    n=0
    while :; do
      for slot in "$@"; do
        n=$((n + 1))
        timeout 60 "$gpuraid" fail "$control" "$slot" || exit 1
        sleep 0.1
        timeout 60 "$gpuraid" replace "$control" "$slot" \
          "$shm/churn-$slot-$n.img" || exit 1
        timeout 120 "$gpuraid" wait "$control" || exit 1
        rm -f "$shm/churn-$slot-$((n - $#)).img"
        [ ! -e "$tmp/churn-stop" ] || { echo "$n" > "$tmp/churn-nr"; exit 0; }
      done
    done
  ) &
  churn_pid=$!
}

churn_stop ()
{
  touch "$tmp/churn-stop"
  wait "$churn_pid" || fail "fail, replace or wait failed meanwhile"
  members_from_status
  echo "$0: $(cat "$tmp/churn-nr") rebuilds meanwhile"
}

# The file of each slot now.
members_from_status ()
{
  local i
  for ((i = 0; i < ${#members[@]}; i++)); do
    members[i]=$(status_field "members.$i.path")
  done
}

# must_notice_wrong_bytes COMMAND...: it measures coders, one of which makes
# wrong parity.
must_notice_wrong_bytes ()
{
  local args rc

  cat >"$tmp/wrong.c" <<'C'
void
ec_encode_data (int len, int k, int rows, unsigned char *tables,
                unsigned char **in, unsigned char **out)
{
  for (int j = 0; j < rows; j++)
    for (int b = 0; b < len; b++)
      out[j][b] = in[0][b];
}
C
  cc -shared -fPIC -o "$tmp/wrong.so" "$tmp/wrong.c"
  for args in "--verify-only" "--memory 1M --seconds 0"; do
    rc=0
    LD_PRELOAD=$tmp/wrong.so timeout 60 "$@" --engine isal $args \
      >"$tmp/out" 2>"$tmp/err" || rc=$?
    [ $rc = 1 ] || fail "$args: wrong bytes were not noticed: status $rc"
    grep -q 'WRONG' "$tmp/out" || fail "$args: $(cat "$tmp/out" "$tmp/err")"
  done
}
