#!/bin/bash
# test-cli-engines: status and watch show the parts of the coder, and
# which of them failed; an older server, without them, is no error.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh

# A server that answers every request alike.
cat >"$tmp/server.py" <<'PY'
import json, os, socket, sys
path, engines = sys.argv[1:]
status = {"state": "healthy", "k": 1, "m": 1, "coder": "auto",
          "loop": "threads", "members": []}
if engines:
    status["engines"] = json.loads (engines)
s = socket.socket (socket.AF_UNIX)
s.bind (path + ".new")
s.listen ()
os.rename (path + ".new", path)         # it listens when it is there
while True:
    c = s.accept ()[0]
    with c, c.makefile ("rw") as f:
        for line in f:
            json.dump ({"ok": True, "status": status}, f)
            f.write ("\n")
            f.flush ()
PY

serve ()
{
  rm -f "$tmp/socket"
  command timeout 600 /usr/bin/python3 "$tmp/server.py" "$tmp/socket" "$1" &
  server=$!
  wait_for test -S "$tmp/socket" || fail "no server"
}

end ()
{
  kill "$server"
  wait "$server" || :
}

run_status ()
{
  timeout 30 "$gpuraid" status "$tmp/socket" >"$tmp/out" ||
    fail "status: exit status $?"
}

serve '[{"name": "isal", "jobs": 3, "bytes": 4096, "failed": null},
        {"name": "cuda:0 NVIDIA H200", "jobs": 12, "bytes": 1048576,
         "failed": "launch: an illegal\u001b[2J address"},
        {"name": "cuda:1 NVIDIA H200", "jobs": 0, "bytes": 0,
         "failed": null}]'
run_status
grep -qxF '  failed: cuda:0 NVIDIA H200 is not used any more: launch: an illegal?[2J address' \
  "$tmp/out" || fail "no line for the failed device: $(cat "$tmp/out")"
[ "$(grep -c failed "$tmp/out")" = 1 ] || fail "more: $(cat "$tmp/out")"
grep -qx '  isal  *3  *4 \?Ki\?B\?' "$tmp/out" || fail "$(cat "$tmp/out")"
grep -qx '  cuda:0 NVIDIA H200  *12  *1 \?Mi\?B\?' "$tmp/out" ||
  fail "$(cat "$tmp/out")"
command timeout 600 "$gpuraid" watch "$tmp/socket" >"$tmp/watch" &
watch_pid=$!
wait_for grep -q ", cuda:0 NVIDIA H200 failed" "$tmp/watch" ||
  fail "watch: $(cat "$tmp/watch")"
end
wait "$watch_pid" || fail "watch: exit status $?"

for engines in '' '[]' '7' '[7]'; do
  serve "$engines"
  run_status
  ! grep -q failed "$tmp/out" || fail "$engines: $(cat "$tmp/out")"
  end
done
