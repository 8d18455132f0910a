#!/bin/bash
# test-open-config.sh: nbdkit with config=: globs, uuid=, members that are not
# there, and where a mistake is.
#
# run-tests: no-thread
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need nbdkit

export GPURAID_CONFIG_DIR=$tmp/conf
mkdir "$GPURAID_CONFIG_DIR" "$shm/other"
conf=$GPURAID_CONFIG_DIR/tank.conf
make_members 3 8M "$shm/other"
create_array k=2 m=1 >/dev/null
make_members 4 8M
create_array k=2 m=2 >/dev/null
uuid=$("$gpuraid" examine --json "${members[0]}" | field 0.uuid)
first=${members[0]}
members=()

said () { grep -qF -- "$1" "$raid_log" || fail "no $1: $(cat "$raid_log")"; }
silent () { [ ! -s "$raid_log" ] || fail "said: $(cat "$raid_log")"; }

# ---- a glob

cat >"$conf" <<CONF
# four disks
member = $shm/member-*.img

cache=64M
degraded=refuse
CONF
start_raid config=tank
expect_state healthy
[ "$(status_field members.0.path)" = "$first" ] || fail "not the member"
silent
stop_raid

# ---- what the command line says counts

mv "$shm/member-03.img" "$tmp/away"
refuse_raid config=tank
said "degraded=refuse"
start_raid degraded=allow config=tank
expect_state degraded
stop_raid
mv "$tmp/away" "$shm/member-03.img"
members=("$shm"/other/member-*.img)
start_raid degraded=allow config="$conf"
[ "$(status_field k)$(status_field m)" = 21 ] || fail "not the other array"
stop_raid
members=()

# ---- two arrays in one glob

# Both are whole: refused, unless uuid= names one.  Of two, one of which is not
# whole, the one that has more members.
echo "member=$shm/other/*" >>"$conf"
refuse_raid config=tank
said "two arrays that are whole: $uuid (4 members) and "
mv "$shm/other/member-02.img" "$tmp/away"
start_raid config=tank
[ "$(status_field k)$(status_field m)" != 21 ] || fail "the other array"
said "$shm/other/member-00.img: a member of another array"
stop_raid
mv "$tmp/away" "$shm/other/member-02.img"
echo "uuid=$uuid" >>"$conf"
echo "no member" >"$shm/other/note"
start_raid config=tank
expect_state healthy
said "left alone, of other arrays: $shm/other/member-00.img, $shm/other/m"
[ "$(wc -l <"$raid_log")" = 1 ] || fail "more than a line: $(cat "$raid_log")"
stop_raid

# ---- a glob that finds nothing

echo "member=$shm/nothing/*" >>"$conf"
start_raid config=tank
expect_state healthy
said "member=$shm/nothing/*: nothing is there"
stop_raid

# ---- a member that this user can't read is missing, and a message says why

if [ "$(id -u)" = 0 ] && [ -z "$SAN" ]; then
  need setpriv
  install -m 755 "$plugin" "$shm/plugin.so"
  install -m 644 "$conf" "$shm/tank.conf"
  chmod 755 "$shm"
  chmod 644 "$shm"/member-*.img
  chmod 600 "$first"
  LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
    setpriv --reuid=65534 --regid=65534 --clear-groups \
    nbdkit -U - "$shm/plugin.so" config="$shm/tank.conf" degraded=allow \
    --run true 2>"$raid_log" || fail "as another user: $(cat "$raid_log")"
  said "left alone, this user can't read them: $first"
  said "missing: slot 0"
  rm "$shm/plugin.so" "$shm/tank.conf"
  chmod 644 "$first"
fi

# ---- mistakes

echo "chunk=5" >>"$conf"
refuse_raid config=tank
said "error: $conf:9: chunk=5: must be a power of two from 4K to 4M"
[ "$(wc -l <"$raid_log")" = 1 ] || fail "more than a line: $(cat "$raid_log")"
refuse_raid config=nosuch
said "error: config=nosuch: $GPURAID_CONFIG_DIR/nosuch.conf: No such file"
said "gpuraid.conf(5) describes this file"
sed -i '$d' "$conf"
echo 'chonk=5' >>"$conf"
refuse_raid config=tank
said "error: $conf:9: unknown key: chonk (nbdkit gpuraid --help lists them)"
echo "uuid=${uuid//[0-9]/0}" >"$conf"
echo "member=$shm/other/*" >>"$conf"
refuse_raid config=tank
said "of the array uuid=: gpuraid examine shows the uuid of each"
echo "member=$shm/nothing/*" >"$conf"
refuse_raid config=tank
said "no member is there: correct the pattern of member="

# uuid= looks at a member behind a URI: one that is not there is no error, and a
# bad one is one line.
printf '%s\n' "uuid=$uuid" "member=nbd+unix:///?socket=$shm/no" >"$conf"
refuse_raid config=tank
[ "$(grep -c 'error: ' "$raid_log")" = 1 ] || fail "not one error"
said "no member was found"
sed -i '$d' "$conf"
echo "member=nbd://x:y:z" >>"$conf"
refuse_raid config=tank
[ "$(wc -l <"$raid_log")" = 1 ] || fail "more than a line: $(cat "$raid_log")"
said "error: nbd://x:y:z: unable to parse URI"

# Nor is one that gives errors once it was connected to.
echo 0 >"$tmp/reads"
nbdkit -P "$tmp/bad.pid" -U "$tmp/bad.sock" eval get_size='echo 8M' pread='n=$(cat '"$tmp"'/reads)
echo $((n + 1)) >'"$tmp"'/reads
[ $n -lt 4 ] || { echo EIO >&2; exit 1; }
head -c $3 /dev/zero'
on_exit kill_ours "$(cat "$tmp/bad.pid")"
sed -i '$d' "$conf"
echo "member=nbd+unix:///?socket=$tmp/bad.sock" >>"$conf"
refuse_raid config=tank
said "error: no member was found"

# ---- the examples of the manual are files that work

awk -v "dir=$GPURAID_CONFIG_DIR" '
  !/^ / { file = "" }
  sub ("^ # /etc/gpuraid.d/", "") { file = dir "/" $0; next }
  file { print substr ($0, 2) >file }' docs/gpuraid.conf.pod
make_members 6 8M
create_array k=4 m=2 >/dev/null
mkdir "$shm/by-id" "$shm/files"
i=0
for m in "${members[@]}"; do
  ln -s "$m" "$shm/by-id/ata-DISK$((++i))"
done
ln -s "${members[0]}" "$shm/by-id/wwn-0x5"
truncate -s 8M "$shm/by-id/ata-BLANK"
uuid=$("$gpuraid" examine --json "${members[0]}" | field 0.uuid)
members=()
for f in "$GPURAID_CONFIG_DIR"/{tank,pool,files}.conf; do
  [ "$(wc -l <"$f")" -ge 3 ] || fail "no example $f"
  sed -i -e "s,/dev/disk/by-id,$shm/by-id," -e "s,/var/lib/gpuraid,$shm," \
    -e "s/^uuid=.*/uuid=$uuid/" "$f"
  name=$(basename "$f" .conf)
  start_raid config="$name"
  expect_state healthy
  [ "$(status_field k)$(status_field m)" = 42 ] || fail "$name: not 4+2"
  silent
  stop_raid
done
[ "$(ls "$shm/files" | wc -l)" = 6 ] || fail "files.conf: $(ls "$shm/files")"
