#!/bin/bash
# test-cli-control: the requests of the command on the control socket, its
# output for the answers, and its exit status, with a scripted server.
#
# run-tests: check=address,thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
sock=$tmp/control

# Answers each request with the next line of $tmp/answers, or with the
# status in $tmp/status where that is "STATUS"; hangs up at the end of
# the file.  Requests go to $tmp/asked.
cat >"$tmp/server.py" <<'PY'
import json, os, socket, sys
tmp = sys.argv[1]
s = socket.socket (socket.AF_UNIX)
s.bind (tmp + "/control.new")
s.listen (8)
os.rename (tmp + "/control.new", tmp + "/control")  # it listens by then
while True:
    c, _ = s.accept ()
    answers = open (tmp + "/answers").read ().splitlines ()
    for line in c.makefile ():
        with open (tmp + "/asked", "a") as f:
            f.write (line)
        if not answers:
            break
        a = answers.pop (0)
        if a == "STATUS":
            status = json.load (open (tmp + "/status"))
            a = json.dumps ({ "ok": True, "status": status })
        try:
            c.sendall (a.encode () + b"\n")
        except BrokenPipeError:
            break
    c.shutdown (socket.SHUT_RDWR)
    c.close ()
PY
/usr/bin/python3 "$tmp/server.py" "$tmp" &
on_exit kill_ours $!
wait_for test -S "$sock" || fail "the fake server did not start"

cat >"$tmp/status" <<JSON
{ "state": "degraded", "writable": true, "k": 4, "m": 2, "chunk": 65536,
  "size": 419430400, "code": "rs", "epoch": 7, "coder": "isal",
  "loop": "io_uring", "uuid": "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff",
  "members": [
    { "slot": 0, "path": "$tmp/d0.img", "state": "active", "errors": 0 },
    { "slot": 1, "path": "$tmp/gone.img", "state": "failed", "errors": 3,
      "last_error": { "errno": 5, "message": "Input/output error",
        "operation": "read", "offset": 8192, "time": 86400 } },
    { "slot": 2, "path": "$tmp/e\u001b[2J\n.img", "state": "active",
      "errors": 0 },
    { "slot": 3, "path": null, "state": "missing", "errors": 0 },
    { "slot": 4, "path": "$tmp/d4.img", "state": "active", "errors": 0 },
    { "slot": 5, "path": "$tmp/d5.img", "state": "active", "errors": 0,
      "bad_sums": 21 },
    { "slot": null, "path": "/spare", "state": "spare", "errors": 0 },
    { "slot": 0, "path": "/n", "state": "rebuilding", "errors": 0 } ],
  "rebuild": { "done": 25, "total": 100, "bytes_per_second": 1048576,
    "eta_seconds": 4000 },
  "resync": null, "scrub": null,
  "counters": { "read_ops": 12345, "read_bytes": 1073741824 } }
JSON
: >"$tmp/d0.img"
ln -s d0.img "$tmp/link"

# try STATUS ANSWERS COMMAND...: its exit status must be STATUS; what it
# says is then in $out and $err, and what it asked in $tmp/asked.
try ()
{
  local want=$1 rc=0
  printf '%b' "$2" >"$tmp/answers"
  shift 2
  rm -f "$tmp/asked"
  (cd "$tmp" && timeout 20 "$gpuraid" "$@") >"$tmp/out" 2>"$tmp/err" || rc=$?
  out=$(cat "$tmp/out") err=$(cat "$tmp/err")
  [ $rc -eq "$want" ] || fail "gpuraid $*: status $rc, not $want: $err"
}

# refused PART: nothing on stdout, one line on stderr, with PART in it
refused ()
{
  [ -z "$out" ] || fail "on stdout: $out"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $err"
  [[ $err == gpuraid:\ *"$1"* ]] || fail "no \"$1\" in: $err"
}

asked ()
{
  [ "$(tail -n 1 "$tmp/asked")" = "$1" ] ||
    fail "asked $(tail -n 1 "$tmp/asked"), not $1"
}

has ()
{
  grep -qF -- "$1" "$tmp/out" || fail "no \"$1\" in: $out"
}

ok='{"ok":true}\n'
no='{"ok":false,"message":"no, because"}\n'

# ---- status

try 1 'STATUS\n' status ./control
has "state: degraded (no more member may fail)"
has "layout: 4 data + 2 parity, chunk 64 KiB, code rs"
has "size: 400 MiB (419430400 bytes)"
has "rebuild: [===>........]  25.0 %"
has "1 h 06 min left"
has "     1  failed           3  $tmp/gone.img"
has "     3  missing          0  -"
has "     -  spare            0  /spare"
has "$tmp/gone.img: read at 8192: Input/output error"
has "a member that is back: gpuraid readd; another in its place: gpuraid replace"
has "e?[2J?.img"
has "12345         1 GiB"
has "slot 5: 21 blocks or pages had another checksum: $tmp/d5.img"
! grep -q $'\033' "$tmp/out" || fail "a path's escape codes came through"

try 1 'STATUS\n' status --json ./control
/usr/bin/python3 - "$tmp" <<'PY' || fail "status --json is not the status"
import json, sys
a, b = (json.load (open (sys.argv[1] + f)) for f in ("/out", "/status"))
assert a.pop ('attached') is None and a == b
PY

# An answer that is nearly empty must not crash it.
try 3 '{"ok":true,"status":{}}\n' status ./control
try 3 '{"ok":true,"status":{"members":{},"rebuild":5,"k":"x"}}\n' \
  status ./control
try 3 '{"ok":true}\n' status ./control;  refused "without a status"
try 3 "$no" status ./control;            refused "no, because"
try 3 '{"ok":false}\n' status ./control; refused "did not say why"
try 3 'hello\n' status ./control;        refused "does not answer as"
try 3 '' status ./control;               refused "the server has gone"
try 3 '' status ./nosuch;              refused "./nosuch: No such file"
try 3 '' status ./d0.img;                refused "d0.img"

cp "$tmp/status" "$tmp/before"
with ()
{
  /usr/bin/python3 - "$tmp/before" "$1" >"$tmp/status" <<'PY'
import json, sys
s = json.load (open (sys.argv[1]))
s.update (json.loads (sys.argv[2]))
print (json.dumps (s))
PY
}

with '{ "scrub": { "done": 1, "total": 4, "paused": true,
  "bytes_per_second": 0, "eta_seconds": 0, "found": 7, "repaired": 6,
  "lost_rows": 2 } }'
try 1 'STATUS\n' status ./control
has "scrub: [===>........]  25.0 %"
has "paused: 7 wrong blocks, 6 repaired, 2 lost rows"
with '{ "reasons": [ "members lost", "resync pending", 7 ] }'
try 1 'STATUS\n' status ./control
has "state: degraded, resync pending (no more member may fail)"
with '{ "lost_rows": 1 }'
try 1 'STATUS\n' status ./control
has "trouble: 1 row is lost: too little of it can be read"
with '{ "lost_rows": 2 }'
try 1 'STATUS\n' status ./control
has "trouble: 2 rows are lost: too little of them can be read"
with '{ "last_scrub": { "ended": 86400, "complete": false,
  "found": 8, "repaired": 0, "unlocated_rows": 3 } }'
try 1 'STATUS\n' status ./control
has ", stopped: 8 wrong blocks, 0 repaired, 3 rows that do not fit"
mv "$tmp/before" "$tmp/status"

# ---- scrub

try 0 "$ok" scrub ./control
asked '{"command":"scrub","action":"start"}'
try 0 "$ok" scrub --repair ./control start
asked '{"command":"scrub","action":"start","repair":true}'
try 0 "$ok" scrub ./control --repair
asked '{"command":"scrub","action":"start","repair":true}'
for action in stop pause resume; do
  try 0 "$ok" scrub ./control $action
  asked '{"command":"scrub","action":"'$action'"}'
done
try 1 "$no" scrub ./control;             refused "no, because"

# ---- rate

try 0 "$ok" rate ./control 10M
asked '{"command":"rate","limit":10485760}'
try 0 "$ok" rate ./control max
asked '{"command":"rate","limit":0}'
try 1 "$no" rate ./control 0;            refused "no, because"
try 2 "$ok" rate ./control fast;         refused "fast: not bytes a second"
try 2 "$ok" rate ./control -- -1
try 2 "$ok" rate
cp "$tmp/status" "$tmp/before"
with '{ "rate_limit": 1048576 }'
try 0 'STATUS\n' rate ./control
has "1 MiB/s of each member"
try 1 'STATUS\n' status ./control
has "rate: rebuild and scrub at most 1 MiB/s of each member"
mv "$tmp/before" "$tmp/status"
try 0 'STATUS\n' rate ./control
has "no limit"

# ---- scrub, wrongly

try 2 "$ok" scrub ./control go
try 2 "$ok" scrub --repair ./control stop

# ---- fail: how a member may be named

try 0 "STATUS\n$ok" fail ./control 3
asked '{"command":"fail","member":"3"}'
for name in "$tmp/gone.img" gone.img ./gone.img "$tmp//./gone.img"; do
  try 0 "STATUS\n$ok" fail ./control "$name"
  asked '{"command":"fail","member":"'"${tmp//\//\\/}"'\/gone.img"}'
done
for name in d0.img link "$tmp/link" "../$(basename "$tmp")/d0.img"; do
  try 0 "STATUS\n$ok" fail ./control "$name"
  asked '{"command":"fail","member":"'"${tmp//\//\\/}"'\/d0.img"}'
done
try 1 "STATUS\n$no" fail ./control other
asked '{"command":"fail","member":"'"${tmp//\//\\/}"'\/other"}'
refused "no, because"
try 1 "STATUS\n" fail ./control 0;       refused "the server has gone"
try 1 "STATUS\n$ok" fail ./control '';   refused "a path or a uuid"

# ---- replace

try 0 "STATUS\n$ok" replace ./control 1 new.img
asked '{"command":"replace","member":"1","new":"'"${tmp//\//\\/}"'\/new.img","force":false}'
try 0 "STATUS\n$ok" replace ./control --force gone.img /dev/x
asked '{"command":"replace","member":"'"${tmp//\//\\/}"'\/gone.img","new":"\/dev\/x","force":true}'
try 1 "STATUS\n$no" replace ./control 1 new.img;  refused "no, because"

# ---- spare

try 0 "$ok" spare ./control new.img
asked '{"command":"spare","new":"'"${tmp//\//\\/}"'\/new.img","force":false}'
try 0 "$ok" spare --force ./control /dev/x
asked '{"command":"spare","new":"\/dev\/x","force":true}'
try 1 "$no" spare ./control new.img;     refused "no, because"
try 1 "$ok" spare ./control '';          refused "has no name"

# ---- readd

try 0 'STATUS\n{"ok":true,"rebuild":"changes"}\n' readd ./control 1
asked '{"command":"readd","member":"1"}'
has "what was changed meanwhile is rebuilt"
try 0 'STATUS\n{"ok":true,"rebuild":"full"}\n' readd ./control gone.img
asked '{"command":"readd","member":"'"${tmp//\//\\/}"'\/gone.img"}'
has "rebuilt in full"
try 1 "STATUS\n$no" readd ./control 1;    refused "no, because"

# ---- wait

try 0 '{"ok":true,"healthy":true}\n' wait ./control
[ -z "$out$err" ] || fail "wait said: $out$err"
try 1 '{"ok":true,"healthy":false}\nSTATUS\n' wait ./control
refused "the array is degraded (no more member may fail)"
sed -i 's/"writable": true/"writable": false/' "$tmp/status"
try 1 '{"ok":true,"healthy":false}\nSTATUS\n' wait ./control
refused "before the first connection that may write"
try 1 "$no" wait ./control;              refused "no, because"

# ---- watch ends with the server; a line only where there is news

try 0 'STATUS\nSTATUS\n' watch ./control
[ "$(wc -l <"$tmp/out")" = 2 ] || fail "watch: not two lines: $out"
has "slot 1 failed, slot 3 missing, slot 0 rebuilding, rebuild  25.0 %"
has "the server has gone"
try 1 '' watch ./control;                refused "the server has gone"
printf 'STATUS\nSTATUS\n' >"$tmp/answers"
timeout 20 script -qec "$gpuraid watch $sock" /dev/null </dev/null \
  >"$tmp/out" || fail "watch on a terminal: status $?"
has "read 0 bytes/s"

# ---- usage

for args in "fail control" \
            "fail --json control 1" "replace control 1" "spare control" "readd control" "watch" "wait" \
            "wait --force control" "replace control 1 a b"; do
  rc=0
  timeout 20 "$gpuraid" $args >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc -eq 2 ] || fail "gpuraid $args: exit status $rc"
  grep -q "^usage: gpuraid ${args%% *} " "$tmp/err" || fail "$args: no usage"
done
for args in "status a b" "status --x control"; do
  rc=0
  timeout 20 "$gpuraid" $args >"$tmp/out" 2>"$tmp/err" || rc=$?
  [ $rc -eq 3 ] || fail "gpuraid $args: exit status $rc"
  grep -q "^usage: gpuraid status " "$tmp/err" || fail "$args: no usage"
done
