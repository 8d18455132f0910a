#!/bin/bash
# test-install.sh: make install puts every file where the system looks for it,
# what is installed works, and make uninstall removes all of it.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need nbdkit make pkg-config pod2man

# The version as it was built, so that nothing is built again here, except for
# the pages: by one test at a time.
dest=$tmp/dest
in_make ()
{
  flock "$B/install.lock" make -s DESTDIR="$dest" VERSION="$(cat "$B/version")" "$@" \
    >"$tmp/out" 2>&1 || fail "make $*: $(cat "$tmp/out")"
}
unset MAKEFLAGS PREFIX PLUGINDIR
plugindir=$(pkg-config nbdkit --variable=plugindir)

in_make install
(cd "$dest" && find . ! -type d | sed 's/^[.]//') | sort >"$tmp/files"
prefix=/usr/local
# Those of the documents' own list, and at least these.
pages=$(scripts/dev/manual --list)
for page in gpuraid.1 nbdkit-gpuraid-plugin.1 gpuraid.conf.5 \
            gpuraid-format.5; do
  grep -qx "$page" <<<"$pages" || fail "no page $page"
done
sort >"$tmp/expected" <<END
$plugindir/nbdkit-gpuraid-plugin.so
$prefix/bin/gpuraid
$prefix/lib/gpuraid/mount
$prefix/lib/gpuraid/wait-ready
$prefix/lib/systemd/system/gpuraid-attach@.service
$prefix/lib/systemd/system/gpuraid-readd@.service
$prefix/lib/systemd/system/gpuraid-scrub@.service
$prefix/lib/systemd/system/gpuraid-scrub@.timer
$prefix/lib/systemd/system/gpuraid@.service
$prefix/lib/tmpfiles.d/gpuraid.conf
$prefix/lib/udev/rules.d/61-gpuraid.rules
$prefix/share/bash-completion/completions/gpuraid
$prefix/share/gpuraid/gpuraid.magic
$prefix/share/zsh/site-functions/_gpuraid
$(for page in $pages; do echo "$prefix/share/man/man${page##*.}/$page"; done)
END
grep -v '^/usr/local/share/doc/gpuraid/' "$tmp/files" |
  diff "$tmp/expected" - || fail "not the files that belong there"
for f in README.md promises.md on-disk-format.md example.conf \
         pictures/layout.svg examples/mail-hook examples/prometheus.yml \
         mnt-tank.service; do
  grep -qx "/usr/local/share/doc/gpuraid/$f" "$tmp/files" || fail "no $f"
done
[ -d "$dest/etc/gpuraid.d" ] || fail "no folder for arrays"

# What the pages link to is there.
doc=$dest/usr/local/share/doc/gpuraid
links () { grep -oE '\]\([^)#:]+[)#]' "$1" | sed 's/^](//; s/.$//'; }
links "$doc/README.md" >"$tmp/links" || fail "README.md has no links"
for page in "$doc"/*.md; do
  while read -r link; do
    [ -e "$doc/$link" ] || fail "${page##*/}: no $link"
  done < <(links "$page")
done

# Paths are filled in, and none is of this tree or of DESTDIR.
! grep -rlE '@[A-Z]+@|'"$tmp|$PWD" "$dest/usr/local/lib" "$dest/etc" ||
  fail "paths that are wrong there"
for f in bin/gpuraid lib/gpuraid/mount \
         lib/gpuraid/wait-ready share/doc/gpuraid/examples/mail-hook; do
  [ -x "$dest/usr/local/$f" ] || fail "$f can't be run"
done

# What is installed works: an array, made and served.
installed=$dest/usr/local/bin/gpuraid
[ "$("$installed" --version)" = "gpuraid $(cat "$B/version")" ] ||
  fail "--version: $("$installed" --version)"
make_members 3 8M
"$installed" create k=2 m=1 "${members[@]}" >"$tmp/created"
nbdkit -U - "$dest$plugindir/nbdkit-gpuraid-plugin.so" "${members[@]}" \
  --run 'nbdinfo --size "$uri"' >"$tmp/size" || fail "the installed plugin"
[ "$(cat "$tmp/size")" = \
  "$("$installed" examine --json "${members[0]}" | field 0.size)" ] ||
  fail "size $(cat "$tmp/size")"
mount=$dest/usr/local/lib/gpuraid/mount
{ "$mount" 2>&1 || :; } | grep -qF "$mount -u [--wait SECONDS] MOUNTPOINT" ||
  fail "mount shows no usage, or another name"

for page in $pages; do
  name=${page%.*} section=${page##*.}
  grep -qE "^[.]TH \"?${name^^}\"? \"?$section\"? " \
    "$dest/usr/local/share/man/man$section/$page" || fail "the page $page"
done

in_make uninstall
[ -z "$(find "$dest" ! -type d)" ] || fail "left: $(find "$dest" ! -type d)"
[ -z "$(find "$dest" -name '*gpuraid*')" ] ||
  fail "left: $(find "$dest" -name '*gpuraid*')"

# Other places; arrays that were described stay.
in_make install PREFIX=/opt/x PLUGINDIR=/opt/y
[ -e "$dest/opt/y/nbdkit-gpuraid-plugin.so" ] || fail "PLUGINDIR"
grep -q '^ *sudo /opt/x/lib/gpuraid/mount -u ' \
  "$dest/opt/x/share/doc/gpuraid/install.md" || fail "paths in install.md"
! grep -rE '/usr/local/(lib|share)' "$dest/opt/x/share/doc/gpuraid"/*.md ||
  fail "a path of another installation"
grep -q '^ExecStart=/opt/x/bin/gpuraid ' \
  "$dest/opt/x/lib/systemd/system/gpuraid@.service" || fail "PREFIX"
echo >"$dest/etc/gpuraid.d/tank.conf"
in_make uninstall PREFIX=/opt/x PLUGINDIR=/opt/y
[ "$(find "$dest" ! -type d)" = "$dest/etc/gpuraid.d/tank.conf" ] ||
  fail "left or lost: $(find "$dest" ! -type d)"
