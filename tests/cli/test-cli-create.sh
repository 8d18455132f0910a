#!/bin/bash
# test-cli-create.sh: gpuraid create: what --dry-run says is what is created
# and written; usage errors; messages about space; examine --brief.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need nbdkit

# run STATUS ARG...: output in $tmp/out and $tmp/err
run ()
{
  local want=$1 rc=0
  shift
  timeout 60 "$gpuraid" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || rc=$?
  [ $rc = "$want" ] || fail "gpuraid $*: exit status $rc: $(cat "$tmp/err")"
}

# said FILE TEXT
said () { grep -qF -- "$2" "$tmp/$1" || fail "no \"$2\": $(cat "$tmp/$1")"; }

quiet () { [ ! -s "$tmp/err" ] || fail "says: $(cat "$tmp/err")"; }

cd "$shm"
truncate -s 64M a b c d e f

# ---- usage errors are 2, refusals 1; each in one line

usage ()
{
  run 2 create "$@"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "create $*: $(cat "$tmp/err")"
}
usage k=2 m=1 colour=red a b c
usage k=2 m=1 chunk=3000 a b c
usage k=2 a b c
usage a b c
usage k=2 m=1
usage k=2 m=1 a b
said err "name more"
usage k=2 m=1 a b c d
said err "leave some out"
usage k=2 m=1 consistency=none journal-size=8M a b c
run 2 create
run 2 create --nosuch k=2 m=1 a b c
[ "$(wc -l <"$tmp/err")" -le 5 ] || fail "--nosuch: $(cat "$tmp/err")"
mkswap d >/dev/null 2>&1
run 1 create k=2 m=1 a b d
said err "--force"
said err "leave it out"
run 1 create k=2 m=1 a b nosuch
said err "size="
ln a link
run 1 create k=2 m=1 a b link
said err "leave it out"
rm link
run 1 create k=2 m=1 size=1G a b c
said err "name a larger one, or give a smaller size="

# ---- --dry-run: the same refusals; nothing is changed or made

before=$(sha256sum a b c d; ls -l --time-style=full-iso)
run 1 create --dry-run k=2 m=1 a b d
said err "--force"
run 0 create --dry-run --force k=2 m=1 a b d
run 0 create --dry-run k=2 m=1 size=10M new1 new2 new3
quiet
run 0 create --dry-run label=tank k=4 m=2 chunk=16KiB size="100.5 MiB" \
  journal-size=4M a b c e f new
[ "$(sha256sum a b c d; ls -l --time-style=full-iso)" = "$before" ] ||
  fail "--dry-run: changed something"
said out "tank: 4+2, chunk 16 KiB, code rs, consistency journal"
said out "(105381888 bytes)"
said out "any 2 members"
said out "journal     24 MiB: 4 MiB of each member"
# A journal that is short for its member; not by default.
run 0 create --dry-run k=2 m=1 size=2G new1 new2 new3
said out "journal     192 MiB: 64 MiB of each member"
! grep -q short "$tmp/out" || fail "the default is short"
run 0 create --dry-run k=2 m=1 size=2047M new1 new2 new3
said out "16.0 MiB of each member"
! grep -q short "$tmp/out" || fail "a small member has a short journal"
run 0 create --dry-run k=2 m=1 size=2G journal-size=63M new1 new2 new3
said out "short       journal of 63 MiB"
said out "long as with 64 MiB"

run 0 create --dry-run k=1 m=1 consistency=none a b
said out "opening it with 1 missing needs degraded=force"
said out "journal     none"

# Members that could not be made: each is refused with the same words, and
# nothing is made of the others.
mkdir folder
ln -s folder linked
ln -s nosuch dangling
for dry in "" --dry-run; do
  run 1 create $dry k=2 m=1 size=4M new1 new2 nosuch/new3
  said err "nosuch/new3: No such file or directory: make its folder first"
  run 1 create $dry k=2 m=1 size=4M new1 new2 folder/../a/new3
  said err "a/new3: Not a directory"
  run 1 create $dry k=2 m=1 size=4M new1 new2 dangling
  said err "dangling: is a symbolic link to a file that is not there"
  run 1 create $dry k=2 m=1 size=4M new1 folder/new2 linked/new2
  said err "$shm/folder/new2 and $shm/linked/new2 are the same file"
  if [ "$(id -u)" = 0 ]; then
    need setpriv
    install -m 755 "$gpuraid" "$shm/gpuraid"
    chmod 755 "$shm"
    rc=0
    setpriv --reuid=65534 --regid=65534 --clear-groups "$shm/gpuraid" create \
      $dry k=2 m=1 size=4M "$shm"/new{1,2,3} 2>"$tmp/err" >"$tmp/out" || rc=$?
    [ $rc = 1 ] || fail "made in a folder of root: status $rc"
    said err "new1: Permission denied: run this as root"
  fi
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$(cat "$tmp/err")"
  [ ! -e new1 ] && [ ! -e folder/new2 ] || fail "something was made"
done
rm -r folder linked dangling

# A limit of the size of files.
(ulimit -f 1024; run 1 create k=2 m=1 size=40M new1 new2 new3)
said err "new1: File too large"
[ ! -e new1 ] || fail "left behind"

# ---- what is created is what --dry-run said; so is what is written

members=(a b c e f g)
truncate -s 64M g
run 0 create --dry-run k=4 m=2 "${members[@]}"
size=$(sed -n 's/.*(\([0-9]*\) bytes)/\1/p' "$tmp/out")
first=$(sed -n 's/^ *\([0-9.]*\) when whole .* first time/\1/p' "$tmp/out")
again=$(sed -n 's/^ *\([0-9.]*\) when whole .* again/\1/p' "$tmp/out")
few=$(sed -n 's/^ *\([0-9.]* to [0-9.]*\) when single.*/\1/p' "$tmp/out")
[ "$first $again $few" = "1.5 3 6 to 12" ] || fail "$(cat "$tmp/out")"
run 0 create k=4 m=2 "${members[@]}"
quiet
[ "$("$gpuraid" examine --json a | field 0.size)" = "$size" ] ||
  fail "not the size that --dry-run said"
start_raid cache=32M
/usr/bin/python3 - "$uri" "$gpuraid" "$control" $first $again ${few/to/} <<'PY' ||
import json, nbd, random, subprocess, sys

uri, gpuraid, control = sys.argv[1:4]
first, again, least, most = map (float, sys.argv[4:])
h = nbd.NBD ()
h.connect_uri (uri)

def counters ():
    out = subprocess.run ([gpuraid, "status", "--json", control],
                          stdout=subprocess.PIPE, check=True).stdout
    c = json.loads (out)["counters"]
    return c["member_write_bytes"], c["write_bytes"]

def measure (what, low, high, write):
    before = counters ()
    write ()
    h.flush ()
    after = counters ()
    x = (after[0] - before[0]) / (after[1] - before[1])
    print (f"{what}: {x:.2f}, {low} to {high} was said")
    assert low * 0.9 <= x <= high * 1.15, what

def stripes ():
    for i in range (64):
        h.pwrite (random.randbytes (1 << 20), i << 20)

def blocks ():
    for i in range (300):
        h.pwrite (random.randbytes (4096), random.randrange (64 << 8) * 4096)
        if i % 3 == 0:
            h.flush ()

measure ("first", first, first, stripes)
measure ("again", again, again, stripes)
measure ("blocks", least, most, blocks)
PY
  fail "what is written is not what --dry-run said"
stop_raid

# ---- examine --brief

run 0 examine --brief a g
[ "$(wc -l <"$tmp/out")" = 2 ] || fail "not a line each: $(cat "$tmp/out")"
uuid=$("$gpuraid" examine --json a | field 0.uuid)
grep -qx "$shm/g  $uuid  4+2  [0-9.]* MiB  slot 5  active  epoch [0-9]*  clean" \
  "$tmp/out" || fail "$(cat "$tmp/out")"
run 1 examine --brief a d
[ "$(wc -l <"$tmp/out")" = 1 ] || fail "$(cat "$tmp/out")"
run 2 examine --brief --json a

# ---- sizes that differ

rm -f ?
truncate -s 64M a b
truncate -s 65000K c
run 0 create k=2 m=1 a b c
quiet
truncate -s 80M c
run 0 create --force k=2 m=1 a b c
said err "$shm/c is larger than the smallest member, $shm/a (64 MiB): 16 MiB"
truncate -s 100M b
run 0 create --dry-run --force k=2 m=1 a b c
said err "2 members are larger than the smallest, $shm/a (64 MiB): 52 MiB"

# ---- members that can't all be filled

total=$(($(df --output=size -k "$shm" | tail -1) / 1024))
rm -f ?
# Of all: what is free changes while other tests run.
truncate -s $((total * 3 / 5))M a b
run 0 create --dry-run consistency=none k=1 m=1 a b
said err "$shm: its file system has "
said err "allocate=yes takes"
run 1 create --dry-run consistency=none k=1 m=1 allocate=yes a b
said err "$shm: No space left on device: 2 members there need "
said err " bytes more at once, but its file system has "
said err " free: make room, or leave allocate=yes out"
run 0 create consistency=none k=1 m=1 a b
said err "writes wait when it is full"
run 0 create --dry-run consistency=none k=1 m=1 size=$((total * 3 / 5))M new1 new2
said err "its file system has "
rm -f ?
truncate -s $((total + 64))M a b
run 1 create consistency=none k=1 m=1 allocate=yes a b
said err "No space left"
[ "$(stat -c %b a)" -lt 32768 ] || fail "space was not given back"
run 1 create consistency=none k=1 m=1 allocate=yes size=$((total + 64))M \
  new1 new2
[ ! -e new1 ] || fail "left behind"

# One that can: and then it has its space.
rm -f ?
truncate -s 32M a b
run 0 create k=1 m=1 allocate=yes a b
quiet
[ $(($(stat -c '%b * %B' b))) -ge $((32 << 20)) ] || fail "not allocated"
