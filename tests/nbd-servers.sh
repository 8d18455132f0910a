# gpuraid: servers whose exports are members, for test-nbd-*.sh.  Source
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
# start_server NAME COMMAND...: it writes its process number to $shm/NAME.pid when
# it listens.  False if it ends before that.
start_server ()
{
  local name=$1 pid
  shift
  rm -f "$shm/$name.pid"
  setsid "$@" >>"$tmp/$name.log" 2>&1 &
  pid=$!
  on_exit kill_ours $pid
  disown $pid
  wait_for eval '[ -s "$shm/$name.pid" ] || ! is_ours $pid' && [ -s "$shm/$name.pid" ]
}

# nbdkit_bg NAME ARG...: after the command in on_host
on_host=()
nbdkit_bg ()
{
  local name=$1
  shift
  start_server "$name" "${on_host[@]}" nbdkit -f -P "$shm/$name.pid" "$@" ||
    fail "nbdkit $*: $(cat "$tmp/$name.log")"
}

# tcp_on NAME ARG...: nbdkit on 127.0.0.1.  Sets port to one that was free; another
# process may be faster to take it.
tcp_on ()
{
  local name=$1 n
  shift
  for n in 1 2 3 4 5; do
    port=$(free_port)
    ! start_server "$name" nbdkit -f -P "$shm/$name.pid" -i 127.0.0.1 -p "$port" "$@" ||
      return 0
    grep -q "Address already in use" "$tmp/$name.log" || break
  done
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

# nbdkit 1.32.4 to 1.33.11 may end when a client goes away with requests under
# way, unless it has a single thread.
single=()
case $(nbdkit --version 2>/dev/null) in
"nbdkit 1.32."* | "nbdkit 1.33."*) single=(-t 1) ;;
esac

# serve_on NAME ARG...: nbdkit on $shm/NAME.sock
serve_on ()
{
  local name=$1
  shift
  rm -f "$shm/$name.sock"
  nbdkit_bg "$name" -U "$shm/$name.sock" "$@"
}

# qemu_on NAME FILE [ARG...]: qemu-nbd there
qemu_on ()
{
  local name=$1 file=$2
  shift 2
  rm -f "$shm/$name.sock"
  start_server "$name" qemu-nbd -f raw -t -k "$shm/$name.sock" \
    --pid-file="$shm/$name.pid" "$@" "$file" ||
    fail "qemu-nbd: $(cat "$tmp/$name.log")"
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
