#!/bin/bash
# test-many-clients.sh: more clients than the limit of open files of a shell; and
# where the limit can't be raised, clients are turned away with one line, while
# all else goes on.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need nbdkit nbdsh

make_members 3 16M
create_array k=2 m=1 >/dev/null

# start_limited SOFT HARD
start_limited ()
{
  local old
  old=$(ulimit -Sn)
  ulimit -Sn "$1"
  # The server's shell sets the hard one: it can't be raised again.
  cat >"$tmp/nbdkit" <<END
#!/bin/bash
PATH=\${PATH#$tmp:}
ulimit -Hn $2 && exec nbdkit "\$@"
END
  chmod +x "$tmp/nbdkit"
  PATH=$tmp:$PATH start_raid
  ulimit -Sn "$old"
}

# connect NR COMMAND: that many clients, of which it prints how many are greeted;
# COMMAND runs while they are connected.
connect ()
{
  timeout 60 /usr/bin/python3 -c '
import resource, socket, subprocess, sys
soft, hard = resource.getrlimit (resource.RLIMIT_NOFILE)
resource.setrlimit (resource.RLIMIT_NOFILE, (hard, hard))
clients, greeted = [], 0
for i in range (int (sys.argv[2])):
    s = socket.socket (socket.AF_UNIX)
    s.connect (sys.argv[1])
    if s.recv (8) == b"NBDMAGIC":
        greeted += 1
        clients.append (s)
print (greeted, flush = True)
subprocess.run (sys.argv[3:], check = True)
' "$sock" "$@"
}

# With a low limit of this machine there are fewer clients, but more than with the
# soft one.  A client takes three files, an eighth is kept, 100 are for all else.
hard=$(ulimit -Hn)
[ "$hard" -ge 300 ] ||
  fail "the hard limit of open files is $hard, and it needs 300: ulimit -Hn"
[ "$hard" -le 2000 ] || hard=2000
clients=$(( (hard * 7 / 8 - 100) / 3 ))
[ $clients -le 200 ] || clients=200

# ---- the soft limit does not count

start_limited 128 "$hard"
nr=$(connect $clients true) || fail "$clients clients"
[ "$nr" = $clients ] || fail "$nr clients of $clients"
! grep -q 'turned away' "$raid_log" || fail "turned away without need"
stop_raid

# ---- the hard one does

start_limited 256 256
mkfifo "$tmp/go"
exec 5<>"$tmp/go"
nbdsh -u "$uri" -c 'print ("ready", flush = True)
import sys
sys.stdin.readline ()
h.pwrite (b"x" * 4096, 0)
h.flush ()
assert h.pread (4096, 0) == b"x" * 4096
print ("done")' <&5 >"$tmp/first" 2>&1 &
wait_for grep -q ready "$tmp/first" || fail "the first client: $(cat "$tmp/first")"

export gpuraid control tmp raid_log
cat >"$tmp/meanwhile" <<'END'
set -e
"$gpuraid" status --json "$control" >"$tmp/status"
cp "$raid_log" "$tmp/log"
echo go >"$tmp/go"
END
nr=$(connect 400 bash "$tmp/meanwhile") || fail "a status, at the limit"
[ "$nr" -gt 20 ] && [ "$nr" -lt 85 ] || fail "$nr clients of 400"
[ "$(grep -c 'clients are turned away: .*LimitNOFILE=' "$raid_log")" = 1 ] ||
  fail "not told once: $(head -c 5000 "$raid_log")"
[ "$(wc -l <"$tmp/log")" -lt 20 ] || fail "the log: $(head -c 5000 "$tmp/log")"
wait_for grep -q 'done' "$tmp/first" || fail "the first client: $(cat "$tmp/first")"
exec 5>&-

# They have gone: there is room.
wait_state 's["connections"] == 0'
nr=$(connect 10 true)
[ "$nr" = 10 ] || fail "$nr of 10 afterwards"
stop_raid
