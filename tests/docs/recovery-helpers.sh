# recovery-helpers: what the hidden lines of docs/recovery.md.in call.
#
# Sourced by scripts/dev/make-recovery for each command.  T is the section's
# folder; its files stand for disks.
#
# SPDX-License-Identifier: BSD-3-Clause

srv=$T/srv
uri="nbd+unix:///?socket=$T/run/tank.sock"

# As if all were installed: the plugin of this tree, the Python that has nbd.
nbdkit () { command nbdkit "${@/%gpuraid/$PLUGIN}"; }
nbdsh () { /usr/bin/python3 -m nbd "$@"; }

# config FILE...: the array tank has these members
config ()
{
  printf 'member=%s\n' "$@" >"$T/conf/tank.conf"
}

# make_array [k=K] [m=M] [KEY=VALUE...]: of disk0, disk1 and so on; 4+2
make_array ()
{
  local key k=4 m=2 i files=() keys=()
  for key in "$@"; do
    case $key in
      k=*) k=${key#k=} ;;
      m=*) m=${key#m=} ;;
      *) keys+=("$key") ;;
    esac
  done
  for ((i = 0; i < k + m; i++)); do
    files+=("$srv/disk$i.img")
  done
  gpuraid create k="$k" m="$m" size=32M label=tank "${keys[@]}" "${files[@]}" &&
    config "${files[@]}"
}

# served [KEY=VALUE...]: it is running, and full of data
served ()
{
  make_array "$@" && gpuraid start tank && fill
}

# All that have a socket in the section's folder.
server_pids ()
{
  local p name
  # Without a process for each: there may be very many.
  for p in /proc/[0-9]*; do
    if { read -r name <"$p/comm"; } 2>/dev/null && [ "$name" = nbdkit ] &&
        tr '\0' ' ' <"$p/cmdline" | grep -qF "$T/run/"; then
      echo "${p#/proc/}"
    fi
  done
}

# The kernel lets go of a ring, and with it of the members and their locks, a
# moment after the process has ended.
is_locked ()
{
  local f
  for f in "$srv"/*.img; do
    if [ -e "$f" ] &&
        grep -q "OFDLCK.*:$(stat -L -c %i "$f") " /proc/locks; then
      return 0
    fi
  done
  return 1
}

crash ()
{
  local pids
  pids=$(server_pids)
  [ -n "$pids" ] || return 1
  kill -9 $pids
  while [ -n "$(server_pids)" ] || is_locked; do sleep 0.02; done
}

end_server () { crash || :; }

python () { /usr/bin/python3 - "$uri" "$@"; }

# fill [SEED]: all of the array, flushed; the same bytes for the same seed
fill ()
{
  python "${1:-1}" <<'PY'
import nbd, random, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
r = random.Random(sys.argv[2])
for i in range(h.get_size() >> 20):
    h.pwrite(r.randbytes(1 << 20), i << 20)
h.flush()
PY
}

# holds [SEED]: whether all of the array is what fill wrote
holds ()
{
  python "${1:-1}" <<'PY'
import nbd, random, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
r = random.Random(sys.argv[2])
for i in range(h.get_size() >> 20):
    if h.pread(1 << 20, i << 20) != r.randbytes(1 << 20):
        sys.exit("another content at %d MiB" % i)
PY
}

# Has each of its threads stopped?
has_stopped ()
{
  ! cat "/proc/$1/task"/*/status | grep '^State:' | grep -qv 'T (stopped)'
}

# standing_still COMMAND...: while the server does nothing, as if it took no time
standing_still ()
{
  local pid rc=0
  pid=$(server_pids)
  kill -STOP "$pid" || return 1
  until has_stopped "$pid"; do sleep 0.02; done
  "$@" || rc=$?
  kill -CONT "$pid"
  return $rc
}

# pull MEMBER TO: it is gone, and the server has noticed; TO has what was on it
# then, as the server may have written to it until then
pull ()
{
  exec 3<"$1"
  rm "$1"
  until grep -qs "$1: its file was deleted" "$SYSLOG_FILE"; do sleep 0.02; done
  cp /proc/self/fd/3 "$2"
  exec 3<&-
}

move_content () { cp "$1" "$2" && truncate -s 0 "$1"; }

# wipe MEMBER TO: it is empty, and TO has what was on it
wipe () { standing_still move_content "$@"; }

# write_some: a few blocks, as a client that goes on with its work
write_some ()
{
  python <<'PY'
import nbd, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
for i in range(4):
    h.pwrite(b"new" * 4096, i * (5 << 20))
h.flush()
PY
}

# crash_while_writing: the server dies in the middle of a client's writes, the
# first of which are flushed
crash_while_writing ()
{
  (python <<'PY'
import nbd, random, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
data = random.Random(2).randbytes(1 << 20)
while True:
    h.pwrite(data, random.randrange(31 << 20))
    h.flush()
    print("flushed", flush=True)
PY
  ) >"$T/client" 2>/dev/null &
  until grep -q flushed "$T/client"; do
    kill -0 $! || return 1
    sleep 0.02
  done
  crash
  wait
  return 0
}

# rot FILE OFFSET...: bytes change, and the disk says nothing
rot ()
{
  local f=$1 off
  shift
  for off in "$@"; do
    printf rotten | dd of="$f" bs=1 seek="$off" conv=notrunc status=none
  done
}
