#!/bin/bash
# test-smart.sh: gpuraid status --verbose says what smartctl says of each member
# that is a disk; one that hangs does not hang it; without smartctl there are no
# such lines.
#
# run-tests: inputs=code,tests/cli/show
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
for d in good bad hangs none; do
  mknod "$tmp/$d" b 7 250 2>/dev/null || skip "mknod: not allowed"
done

mkdir "$tmp/bin"
cat >"$tmp/bin/smartctl" <<'END_OF_FILE'
#!/bin/bash
[ "$1 $2" = "-H --json" ] && [ $# = 3 ] || exit 1
case "$3" in
  */good) echo '{"smart_status":{"passed":true}}' ;;
  */bad) echo '{"smart_status":{"passed":false}}'; exit 8 ;;
  */none) echo '{"smartctl":{"messages":[{"string":"open: no"}]}}'; exit 2 ;;
  */hangs) echo $$ >"$3.pid"; printf '{'; exec sleep 1000 ;;
  *) echo '{"smart_status":{"passed":true}}' ;;
esac
END_OF_FILE
chmod +x "$tmp/bin/smartctl"

# smart FOLDER...: with these first in PATH, in $tmp/out
smart ()
{
  PATH=$1 /usr/bin/python3 tests/cli/show/smart.py "$gpuraid" "$tmp" \
    "$tmp/good" "$tmp/hangs" "$tmp/none" "$tmp/bad" >"$tmp/out" ||
    fail "no status"
}

smart "$tmp/bin:$PATH"
diff - "$tmp/out" <<END_OF_FILE || fail "not what smartctl says"
   smart: $tmp/good: passed
   smart: $tmp/hangs: no answer in 10 s
   smart: $tmp/none: unknown: open: no
   smart: $tmp/bad: FAILED
END_OF_FILE
pid=$(cat "$tmp/hangs.pid")
has_gone () { ! kill -0 "$pid" 2>/dev/null || grep -q '^State:.Z' "/proc/$pid/status"; }
wait_for has_gone || fail "smartctl is left behind"

mkdir "$tmp/empty"
smart "$tmp/empty"
[ ! -s "$tmp/out" ] || fail "without smartctl: $(cat "$tmp/out")"

for args in --verbose '--verbose --json x' '--verbose --quiet x'; do
  rc=0
  timeout 60 "$gpuraid" status $args 2>/dev/null || rc=$?
  [ $rc = 3 ] || fail "$args: exit status $rc"
done
