#!/bin/bash
# test-metrics.sh: gpuraid metrics has what status --json has, in Prometheus'
# text format; the examples in docs/examples use only names that are there.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit nbdcopy

export GPURAID_RUNDIR=$shm/run
mkdir "$GPURAID_RUNDIR"

# metrics STATUS ARG...
metrics ()
{
  local want=$1 rc=0
  shift
  timeout 60 "$gpuraid" metrics "$@" >"$tmp/out" 2>"$tmp/err" ||
    rc=$?
  [ $rc = "$want" ] ||
    fail "metrics $*: exit status $rc: $(cat "$tmp/out" "$tmp/err")"
}

# status_of NAME CONTROL: the status with a name, in $tmp/NAME.json
status_of ()
{
  { timeout 30 "$gpuraid" status --json "$2" || [ $? -le 2 ]; } |
    /usr/bin/python3 -c 'import json, sys
json.dump (dict (json.load (sys.stdin), name=sys.argv[1]), sys.stdout)' "$1" \
    >"$tmp/$1.json"
}

# same FILE FILE: the same status, but that to ask for it takes the lock.
same ()
{
  cmp -s <(sed 's/"lock": {[^}]*}//' "$1") <(sed 's/"lock": {[^}]*}//' "$2")
}

# quiet NAME... -- ARG...: metrics ARG..., and the statuses of the arrays at
# the same time: taken again if a number has changed by itself meanwhile.
quiet ()
{
  local names=() i n
  while [ "$1" != -- ]; do
    names+=("$1")
    shift
  done
  shift
  for ((i = 0; i < 100; i++)); do
    for n in "${names[@]}"; do
      status_of "$n" "$n"
      mv "$tmp/$n.json" "$tmp/$n.before"
    done
    metrics 0 "$@"
    for n in "${names[@]}"; do
      status_of "$n" "$n"
      same "$tmp/$n.json" "$tmp/$n.before" || continue 2
    done
    return
  done
  fail "the numbers do not settle"
}

compare ()
{
  /usr/bin/python3 tests/cli/show/metrics.py compare "$@" ||
    fail "not as the status says"
}

metrics 0
[ ! -s "$tmp/out" ] && [ ! -s "$tmp/err" ] || fail "nothing runs: says something"

# ---- one array; a path with all that is escaped

dir=$shm/$'a"b\\c\nd'
mkdir "$dir"
control=$GPURAID_RUNDIR/one.control
make_members 3 16M "$dir"
create_array k=2 m=1 size=8M label=disks >/dev/null
start_raid
one=$raid_pid
on_exit kill_ours "$one"
noise 4194304 >"$tmp/data"
nbdcopy "$tmp/data" "$uri"
quiet one -- one
compare "$tmp/out" "$tmp/one.json"
/usr/bin/python3 tests/cli/show/metrics.py names "$tmp/out" >"$tmp/names"
[ "$(wc -l <"$tmp/names")" -ge 60 ] || fail "few names: $(cat "$tmp/names")"

# Named by its socket it has its own name.
metrics 0 "$control"
grep -qx 'gpuraid_array_up{array="disks"} 1' "$tmp/out" ||
  fail "by its socket: $(cat "$tmp/out")"

# ---- two; one degraded, with a scrub that has ended

control=$GPURAID_RUNDIR/two.control sock=$shm/sock2
make_members 3 16M
create_array k=1 m=2 size=8M >/dev/null
raid_flags=(-D gpuraid.watch=100)
start_raid
two=$raid_pid
on_exit kill_ours "$two"
nbdcopy "$tmp/data" "nbd+unix:///?socket=$sock"
fail_member 1
rm "${members[2]}"
has_error () { [ "$(status_field members.2.last_error)" != null ]; }
wait_for has_error || fail "a file that was deleted is no error"
timeout 60 "$gpuraid" rate two 1
replace_member 1 "$shm/new"
timeout 60 "$gpuraid" rebuild two pause
timeout 60 "$gpuraid" rate one 1
timeout 60 "$gpuraid" replace one 1 "$shm/new-one"
timeout 60 "$gpuraid" fail one "$shm/new-one"
quiet one two --
compare "$tmp/out" "$tmp/one.json" "$tmp/two.json"
for part in 'rebuild_paused{array="two"} 1' \
              'array_reason{array="two",reason="members lost"} 1' \
              'array_reason{array="one",reason="members lost"} 0'; do
  grep -qxF "gpuraid_$part" "$tmp/out" || fail "no $part"
done
part='/new-one: not rebuilt: taken out by command"} [0-9]*$'
grep -q "^gpuraid_failed_change_.*{array=\"one\",message=\"slot 1: .*$part" \
  "$tmp/out" || fail "no failed change: $(grep failed_change "$tmp/out")"
grep -q '^gpuraid_member_last_error_.*,slot="2",.*,operation="check",' \
  "$tmp/out" || fail "no last error: $(grep last_error "$tmp/out")"
timeout 60 "$gpuraid" rate two max
timeout 60 "$gpuraid" rebuild two resume
timeout 60 "$gpuraid" wait two 2>/dev/null || :
timeout 60 "$gpuraid" scrub two
timeout 60 "$gpuraid" wait two 2>/dev/null || :
quiet one two --
compare "$tmp/out" "$tmp/one.json" "$tmp/two.json"
grep -q '^gpuraid_last_scrub_complete{array="two"} 1$' "$tmp/out" ||
  fail "no scrub"

# The examples: JSON that is JSON, and no name that is nowhere.
/usr/bin/python3 tests/cli/show/metrics.py names "$tmp/out" >"$tmp/names"
/usr/bin/python3 -c 'import json, sys
d = json.load (open (sys.argv[1]))
assert d["panels"] and all (p["targets"] for p in d["panels"])
ids = [p["id"] for p in d["panels"]]
assert len (ids) == len (set (ids))' docs/examples/grafana-dashboard.json
for f in docs/examples/* docs/gpuraid.pod; do
  grep -o 'gpuraid_[a-z_]\+' "$f" | grep -v '_member$' | sort -u >"$tmp/used" ||
    :
  while read -r name; do
    grep -qx "$name" "$tmp/names" || fail "$f: $name is no metric"
  done <"$tmp/used"
done
grep -q gpuraid_ docs/examples/gpuraid-rules.yml || fail "no names in the rules"
[ "$(wc -l <"$tmp/used")" -ge 8 ] || fail "no names in the manual"

# ---- --output: whole, readable by others, and nothing is left beside it

mkdir "$tmp/textfile"
umask 022
quiet one two -- --output "$tmp/textfile/gpuraid.prom"
[ ! -s "$tmp/out" ] || fail "--output: also says: $(cat "$tmp/out")"
compare "$tmp/textfile/gpuraid.prom" "$tmp/one.json" "$tmp/two.json"
[ "$(stat -c %a "$tmp/textfile/gpuraid.prom")" = 644 ] || fail "--output: mode"
before=$(stat -c %i "$tmp/textfile/gpuraid.prom")
exec 3<"$tmp/textfile/gpuraid.prom"
cp "$tmp/one.json" "$tmp/one.old"
quiet one -- --output "$tmp/textfile/gpuraid.prom" one
[ "$(stat -c %i "$tmp/textfile/gpuraid.prom")" != "$before" ] ||
  fail "--output: written in place"
cat <&3 >"$tmp/old"
compare "$tmp/old" "$tmp/one.old" "$tmp/two.json"
compare "$tmp/textfile/gpuraid.prom" "$tmp/one.json"
metrics 1 --output "$tmp/textfile/nosuch/x.prom" one
mkdir "$tmp/textfile/folder"
metrics 1 --output "$tmp/textfile/folder" one
[ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
[ "$(ls "$tmp/textfile")" = $'folder\ngpuraid.prom' ] ||
  fail "left beside it: $(ls "$tmp/textfile")"

# What is no file stays what it is, and a symbolic link a link.
mkfifo "$tmp/textfile/pipe"
for name in "$tmp/textfile/pipe" ''; do
  metrics 1 --output "$name" one
  [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q 'is no file' "$tmp/err" ||
    fail "--output $name: $(cat "$tmp/err")"
done
[ -p "$tmp/textfile/pipe" ] || fail "--output: the pipe was replaced"
ln -s gpuraid.prom "$tmp/textfile/link"
before=$(stat -c %i "$tmp/textfile/gpuraid.prom")
exec 3<"$tmp/textfile/gpuraid.prom"     # its inode is not used again
quiet one -- --output "$tmp/textfile/link" one
[ -L "$tmp/textfile/link" ] &&
  [ "$(stat -c %i "$tmp/textfile/gpuraid.prom")" != "$before" ] ||
  fail "--output: a link was replaced"

# ---- no answer is a metric too

kill -9 "$two"
wait "$two" 2>/dev/null || :
metrics 1 --output "$tmp/textfile/gpuraid.prom"
grep -qx 'gpuraid_array_up{array="one"} 1' "$tmp/textfile/gpuraid.prom" &&
  grep -qx 'gpuraid_array_up{array="two"} 0' "$tmp/textfile/gpuraid.prom" ||
  fail "no answer: $(head "$tmp/textfile/gpuraid.prom")"
metrics 1 nosuch
grep -qx 'gpuraid_array_up{array="nosuch"} 0' "$tmp/out" || fail "nosuch"
for args in "one two" "--nosuch" "--output"; do
  metrics 2 $args
done
raid_pid=$one
stop_raid
