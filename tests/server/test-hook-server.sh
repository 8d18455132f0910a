#!/bin/bash
# test-hook-server: the program that hook= names is run by a server, one that
# hangs stops nothing, and one that can't be run is refused at the start.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdcopy
size=$((16 << 20))

make_members 5 16M
create_array k=3 m=2 size=$size

# refused PART HOOK: in one line, and no server
refused ()
{
  refuse_raid hook="$2"
  [ "$(wc -l <"$raid_log")" = 1 ] || fail "hook=$2: $(cat "$raid_log")"
  grep -qF -- "$1" "$raid_log" || fail "hook=$2: no \"$1\""
}

refused "No such file or directory: give the path of a program" "$tmp/nosuch"
refused "not a program" "$tmp"
echo "#!/bin/sh" >"$tmp/hook"
refused "not a program that can be run (chmod +x" "$tmp/hook"

# What it gets, and which files it has.
cat >"$tmp/hook" <<HOOK
#!/bin/sh
ls -l /proc/\$\$/fd >>"$tmp/fds"
echo "\$1 \$2" >>"$tmp/events"
cat >>"$tmp/json"
HOOK
chmod +x "$tmp/hook"
start_raid hook="$tmp/hook" cache=16M
uuid=$(status_field uuid)
noise $size >"$tmp/data"
timeout 120 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
timeout 60 "$gpuraid" spare "$control" "$shm/spare" || fail "gpuraid spare"
fail_member 2
wait_healthy
wait_for grep -q '"rebuilt"' "$tmp/json" || fail "no event: rebuilt"
"$gpuraid" rate "$control" 1 >/dev/null
timeout 60 "$gpuraid" replace "$control" 0 "$shm/new" || fail "gpuraid replace"
timeout 60 "$gpuraid" fail "$control" "$shm/new" || fail "gpuraid fail"
wait_for grep -q '"change-failed"' "$tmp/json" || fail "no event: change-failed"
stop_raid
diff "$tmp/events" - <<EVENTS || fail "other events"
member-failed $uuid
degraded $uuid
spare-used $uuid
rebuilt $uuid
member-failed $uuid
change-failed $uuid
EVENTS
! grep -E "member-0|socket:|anon_inode|pipe:" "$tmp/fds" ||
  fail "the program has files of the server"
/usr/bin/python3 - "$tmp/json" <<'PY' || fail "not the events in JSON"
import json, sys
e = [json.loads (l) for l in open (sys.argv[1])]
assert [x["event"] for x in e] == \
    ["member-failed", "degraded", "spare-used", "rebuilt", "member-failed",
     "change-failed"], e
assert e[0]["member"]["slot"] == 2, e[0]
assert e[0]["member"]["state"] == "failed", e[0]
assert e[0]["state"] == "degraded" and e[3]["state"] == "healthy", e
assert e[0]["reasons"] == ["members lost"] and e[3]["reasons"] == [], e
assert e[2]["member"]["path"].endswith ("/spare"), e[2]
assert e[5]["member"]["slot"] == 0 and e[5]["state"] == "healthy", e[5]
assert e[5]["message"].startswith ("slot 0: "), e[5]
assert e[5]["message"].endswith ("/new: not rebuilt: taken out by command"), e[5]
assert e[4]["message"] is None, e[4]
PY
members[2]=$shm/spare

# One that hangs: neither requests nor commands wait for it, nor the stop for
# long.
cat >"$tmp/hook" <<HOOK
#!/bin/sh
[ ! -s "$tmp/hung" ] || ! kill -0 \$(tail -n 1 "$tmp/hung") || : >"$tmp/two"
echo \$\$ >>"$tmp/hung"
exec sleep 1000
HOOK
start_raid hook="$tmp/hook" cache=16M
fail_member 1
wait_for test -s "$tmp/hung" || fail "it is not run"
fail_member 3
SECONDS=0
timeout 120 nbdcopy "$tmp/data" "$uri" || fail "nbdcopy: failed"
timeout 120 nbdcopy "$uri" "$tmp/back" || fail "nbdcopy: failed"
cmp -n $size "$tmp/data" "$tmp/back" || fail "wrong data"
no_longer_than 40 || fail "requests wait for it: $SECONDS s"
SECONDS=0
stop_raid
no_longer_than 20 || fail "the stop waits for it: $SECONDS s"
[ ! -e "$tmp/two" ] || fail "two run at once"

# It runs when the server ends, and a client has left only then: the server looks
# for clients that it waits for until its very end.
cat >"$tmp/hook" <<HOOK
#!/bin/sh
echo \$1 >>"$tmp/slow"
exec sleep 4
HOOK
make_members 5 16M
create_array k=3 m=2 size=$size
start_raid hook="$tmp/hook" cache=16M
mkfifo "$tmp/to" "$tmp/from"
/usr/bin/python3 -c 'import nbd, sys
h = nbd.NBD ()
h.connect_uri (sys.argv[1])
print ("connected", flush=True)
sys.stdin.read ()
h.shutdown ()' "$uri" <"$tmp/to" >"$tmp/from" &
client=$!
exec 8>"$tmp/to" 9<"$tmp/from"
read -r answer <&9 || fail "the client is not connected"
fail_member 1
wait_for test -s "$tmp/slow" || late "it is not run"
kill "$raid_pid"
exec 8>&- 9<&-
wait $client || fail "the client failed"
rc=0
wait "$raid_pid" || rc=$?
raid_pid=
[ $rc = 0 ] || fail "its exit status was $rc"

# The example.
cat >"$tmp/sendmail" <<'MAIL'
#!/bin/sh
cat >"$OUT"
MAIL
chmod +x "$tmp/sendmail"
echo '{"event":"degraded"}' |
  OUT=$tmp/mail MAILTO=me SENDMAIL=$tmp/sendmail docs/examples/mail-hook \
    degraded home || fail "mail-hook: status $?"
diff "$tmp/mail" - <<'MAIL' || fail "another mail"
To: me
Subject: gpuraid home: degraded

{"event":"degraded"}
MAIL
