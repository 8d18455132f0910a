#!/bin/bash
# test-system-files.sh: what is installed for systemd, udev and file(1) is
# accepted by them, and says what is true of a member.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need file systemd-analyze systemd-tmpfiles udevadm

# Installed in folders of the test, so that the programs of the units exist.
export PREFIX=$tmp/usr PLUGINDIR=$tmp/plugins CONFDIR=$tmp/etc
unset DESTDIR
flock "$B/install.lock" make -s VERSION="$(cat "$B/version")" install
share=$PREFIX/share/gpuraid

# ---- units

mkdir "$tmp/units"
cp "$PREFIX/lib/systemd/system/gpuraid@.service" \
  "$PREFIX/lib/systemd/system/gpuraid-readd@.service" \
  "$PREFIX/lib/systemd/system/gpuraid-scrub@.service" \
  "$PREFIX/lib/systemd/system/gpuraid-scrub@.timer" \
  "$PREFIX/share/doc/gpuraid/mnt-tank.service" "$tmp/units"
for unit in gpuraid@tank.service gpuraid-readd@sdb.service \
            gpuraid-scrub@tank.service gpuraid-scrub@tank.timer \
            mnt-tank.service; do
  SYSTEMD_UNIT_PATH=$tmp/units: systemd-analyze --man=no verify \
    "$tmp/units/${unit/@*./@.}" >"$tmp/out" 2>&1 ||
    fail "$unit: $(cat "$tmp/out")"
  ! grep -F "$unit" "$tmp/out" || fail "$unit has mistakes"
done
# 0 is nothing exposed, 100 everything.
for unit in gpuraid@.service gpuraid-readd@.service gpuraid-scrub@.service; do
  systemd-analyze security --offline=true --threshold=30 \
    "$tmp/units/$unit" >"$tmp/out" 2>&1 ||
    fail "too much is allowed: $(cat "$tmp/out")"
done

# A mistake is found.
sed -i 's/^Restart=/Restrat=/' "$tmp/units/gpuraid@.service"
systemd-analyze --man=no verify "$tmp/units/gpuraid@.service" \
  >"$tmp/out" 2>&1 || :
grep -q Restrat "$tmp/out" || fail "verify finds no mistake"

# As gpuraid@.service calls it: the server answers, or has ended.
sleep 1000 &
sleeper=$!
on_exit kill_ours $sleeper
cat >"$tmp/answer" <<'END'
#!/bin/sh
[ "$*" = "status --quiet tank" ] && [ -e "$(dirname "$0")/up" ] && exit 1
exit 3
END
chmod +x "$tmp/answer"
wait_ready () { GPURAID=$tmp/answer "$PREFIX/lib/gpuraid/wait-ready" "$@"; }
(sleep 0.5; touch "$tmp/up") &
wait_ready tank $sleeper || fail "wait-ready: a server that answers"
rm "$tmp/up"
(sleep 0.5; kill $sleeper) &
! wait_ready tank $sleeper 2>"$tmp/err" || fail "wait-ready: one that ended"
grep -q '^tank: ' "$tmp/err" || fail "wait-ready: $(cat "$tmp/err")"

# ---- the folder of the sockets

if [ "$(id -u)" = 0 ]; then
  mkdir -p "$tmp/root/etc" "$tmp/root/run"
  echo root:x:0:0:root:/root:/bin/sh >"$tmp/root/etc/passwd"
  echo root:x:0: >"$tmp/root/etc/group"
  systemd-tmpfiles --root="$tmp/root" --create \
    "$PREFIX/lib/tmpfiles.d/gpuraid.conf" 2>"$tmp/err" ||
    fail "tmpfiles: $(cat "$tmp/err")"
  [ "$(stat -c %a "$tmp/root/run/gpuraid")" = 755 ] || fail "no /run/gpuraid"
fi
[ "$(grep -v '^#' system/gpuraid.tmpfiles)" = \
  'd /run/gpuraid 0755 root root -' ] || fail "tmpfiles"

# ---- members

# set_label MEMBER TEXT: in all four copies, as if it was created with it.
set_label ()
{
  PYTHONPATH=tests /usr/bin/python3 - "$@" <<'PY'
import os
import struct
import sys

from corruption.disk import BLOCK, crc32c

size = os.path.getsize(sys.argv[1])
with open(sys.argv[1], 'r+b') as f:
    for at in 0, BLOCK, size - 2 * BLOCK, size - BLOCK:
        f.seek(at)
        block = bytearray(f.read(BLOCK))
        block[72:104] = sys.argv[2].encode().ljust(32, b'\0')
        block[8:12] = bytes(4)
        block[8:12] = struct.pack('<I', crc32c(bytes(block)))
        f.seek(at)
        f.write(block)
PY
}

make_members 6 8M
create_array k=4 m=2
uuid=$("$gpuraid" examine --json "${members[0]}" | field 0.uuid)
size=$("$gpuraid" examine --json "${members[0]}" | field 0.size)
set_label "${members[1]}" tank
set_label "${members[2]}" 'a /é'
"$gpuraid" examine "${members[1]}" "${members[2]}" >/dev/null ||
  fail "no members with a label"

# ---- udev

rules=$PREFIX/lib/udev/rules.d/61-gpuraid.rules
if udevadm verify --help >/dev/null 2>&1; then
  udevadm verify "$rules" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
else
  # Before systemd 254: a line is a comment, or keys with values.
  key='[A-Z_]+(\{[A-Za-z_]+\})?(=|==|!=|\+=)"[^"]*"'
  ! grep -vE "^(#.*|$key(, $key)*)?\$" "$rules" || fail "a line of $rules"
fi

# udev PATH: run the rule's program on it.
udev ()
{
  local program
  program=$(sed -n 's/^IMPORT{program}="\(.*\)"$/\1/p' "$rules")
  [ -n "$program" ] || fail "the rule has no program"
  ${program/\$devnode/$1}
}

udev "${members[0]}" >"$tmp/out" || fail "udev: exit status $?"
grep -qxF 'ID_FS_TYPE=gpuraid_member' "$tmp/out" || fail "udev: no type"
grep -qxF 'ID_FS_USAGE=raid' "$tmp/out" || fail "udev: no usage"
grep -qxF "ID_FS_UUID=$uuid" "$tmp/out" || fail "udev: no uuid"
! grep LABEL "$tmp/out" || fail "udev: a label"
udev "${members[1]}" >"$tmp/out"
grep -qxF 'ID_FS_LABEL=tank' "$tmp/out" || fail "udev: no label"
udev "${members[2]}" >"$tmp/out"
grep -qxF 'ID_FS_LABEL=a____' "$tmp/out" || fail "udev: $(cat "$tmp/out")"
grep -qxF 'ID_FS_LABEL_ENC=a\x20\x2f\xc3\xa9' "$tmp/out" ||
  fail "udev: $(cat "$tmp/out")"
! udev "$gpuraid" >"$tmp/out" 2>&1 || fail "udev: of no member"
[ ! -s "$tmp/out" ] || fail "udev: $(cat "$tmp/out")"

# ---- file

# says FILE TEXT
says ()
{
  local text
  text=$(file -b -m "$share/gpuraid.magic" "$1")
  [ "$text" = "$2" ] || fail "file says: $text, not: $2"
}

file -c -m "$share/gpuraid.magic" >"$tmp/out" 2>&1 || fail "the magic"
! grep -i warning "$tmp/out" | grep -v 'using regular magic file' ||
  fail "the magic: $(cat "$tmp/out")"
known="gpuraid member, k+m 4+2, array $uuid"
says "${members[0]}" "$known, $size bytes"
says "${members[1]}" "$known, label tank, $size bytes"
# The second copy, and a version that comes later.
dd if=/dev/zero of="${members[1]}" bs=4096 count=1 conv=notrunc status=none
says "${members[1]}" "$known, label tank, $size bytes"
printf '\002' | dd of="${members[0]}" bs=1 seek=12 conv=notrunc status=none
says "${members[0]}" "gpuraid member, version 2"
says "$gpuraid" data
