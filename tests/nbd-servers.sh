# gpuraid: servers whose exports are members, for tests/test-nbd-*.sh.  Source
# it after tests/functions.sh.
#
# SPDX-License-Identifier: BSD-3-Clause

# uri_of NAME: of a server on $shm/NAME.sock
uri_of ()
{
  echo "nbd+unix:///?socket=$shm/$1.sock"
}

free_port ()
{
  /usr/bin/python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# A session of its own: else a stopped server may get SIGHUP.
# nbdkit_bg NAME ARG...: its process number is in $shm/NAME.pid; after the
# command in on_host
on_host=()
nbdkit_bg ()
{
  local name=$1
  shift
  rm -f "$shm/$name.pid"
  setsid "${on_host[@]}" nbdkit -f -P "$shm/$name.pid" "$@" >>"$tmp/$name.log" 2>&1 &
  on_exit kill_ours $!
  disown $!
  wait_for test -s "$shm/$name.pid" ||
    fail "nbdkit $*: $(cat "$tmp/$name.log")"
}

# In front of a command: what it does is as on another host, whose /run and
# network are others.
other_host=(unshare --net --mount --propagation private bash -c
  'mount -t tmpfs tmpfs /run && exec "$@"' -)
need_other_host ()
{
  [ "$(id -u)" = 0 ] && "${other_host[@]}" true 2>/dev/null ||
    skip "no name spaces: not root?"
}

# serve_on NAME ARG...: nbdkit on $shm/NAME.sock
serve_on ()
{
  local name=$1
  shift
  rm -f "$shm/$name.sock"
  nbdkit_bg "$name" -U "$shm/$name.sock" "$@"
}

# qemu_on NAME FILE [ARG...]: qemu-nbd there.  It writes its pid file when it
# listens.
qemu_on ()
{
  local name=$1 file=$2
  shift 2
  rm -f "$shm/$name.sock" "$shm/$name.pid"
  setsid qemu-nbd -f raw -t -k "$shm/$name.sock" --pid-file="$shm/$name.pid" "$@" \
    "$file" >>"$tmp/$name.log" 2>&1 &
  on_exit kill_ours $!
  disown $!
  wait_for test -s "$shm/$name.pid" || fail "qemu-nbd: $(cat "$tmp/$name.log")"
}

# Has each of its threads stopped?
has_stopped ()
{
  ! grep -v '^State:.*T (stopped)' <(grep -h '^State:' "/proc/$1/task"/*/status) \
    >/dev/null
}

# signal_server NAME SIGNAL
signal_server ()
{
  local pid
  pid=$(cat "$shm/$1.pid")
  kill "-$2" "$pid"
  [ "$2" != STOP ] || wait_for has_stopped "$pid" || fail "$1 does not stop"
}

# kill_server NAME: like a failure of its power
kill_server ()
{
  local pid
  pid=$(cat "$shm/$1.pid")
  kill_ours "$pid"
  timeout 10 tail -s 0.02 --pid="$pid" -f /dev/null || fail "$1 does not die"
}
