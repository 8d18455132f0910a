#!/bin/bash
# test-version.sh: command, plugin and tarball tell the same version, and a
# tarball is built without git.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need nbdkit make pkg-config

# What was built may be older than the last commit.
version=$(cat "$B/version")
release=$(sed -n 's/^#define GPURAID_RELEASE "\(.*\)"$/\1/p' common/version.h)
case "$version" in
  "$release"|"$release+g"*) ;;
  *) [ -f VERSION ] || fail "version $version of release $release" ;;
esac
[ "$("$gpuraid" --version)" = "gpuraid $version" ] ||
  fail "the command: $("$gpuraid" --version)"
nbdkit "$plugin" --version >"$tmp/plugin"
grep -qxF "gpuraid $version" "$tmp/plugin" ||
  fail "the plugin: $(cat "$tmp/plugin")"

# In a fresh clone: the commit, and whether files were changed; at a tag
# nothing.
git_in_clone ()
{
  git -C "$tmp/clone" -c user.name=x -c user.email=x@example.com "$@" >/dev/null
}
expect_version ()
{
  local v
  v=$("$tmp/clone/scripts/dev/version")
  [[ $v =~ ^$1$ ]] || fail "version $v, not $1"
}
need git
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
mkdir -p "$tmp/clone/common"
cp --parents scripts/dev/version common/version.h "$tmp/clone"
expect_version "$release"
git_in_clone init -q
git_in_clone add .
git_in_clone commit -m x
expect_version "$release[+]g[0-9a-f]{10}"
echo >>"$tmp/clone/common/version.h"
expect_version "$release[+]g[0-9a-f]{10}[.]dirty"
git_in_clone checkout -q common/version.h
git_in_clone tag "v$release"
expect_version "$release"
rm -rf "$tmp/clone/.git"
echo 1.2.3 >"$tmp/clone/VERSION"
expect_version 1.2.3

# The tarball, which is not made in this tree: other tests use it.
current=$(scripts/dev/version)
tarball=$(scripts/dev/dist 9.8.7 "$tmp")
[ "$tarball" = gpuraid-9.8.7.tar.gz ] || fail "the tarball: $tarball"
tar -C "$tmp" -xf "$tmp/$tarball"
fresh=$tmp/gpuraid-9.8.7
(cd "$fresh" && find . -type f | sort) >"$tmp/files"
for f in README.md LICENSE Makefile VERSION array/array.h docs/gpuraid.pod \
         scripts/deps tests/functions.sh 'system/gpuraid@.service.in'; do
  grep -qxF "./$f" "$tmp/files" || fail "the tarball has no $f"
done
! grep -E '[.](o|d|so|pyc)$|/[.]git/|^./(build|gpuraid$)' "$tmp/files" ||
  fail "the tarball has that too"

# A whole build would take too long here.
unset MAKEFLAGS B OUT SAN
make -n -C "$fresh" all unit >"$tmp/would" 2>"$tmp/err" ||
  fail "make -n: $(cat "$tmp/err")"
grep -q -- '-DGPURAID_VERSION=.*9[.]8[.]7' "$tmp/would" || fail "no version"
make -s -C "$fresh" build/cli/main.o || fail "an object"
grep -q '9[.]8[.]7' "$fresh/build/cli/main.o" || fail "no version in it"
[ "$(scripts/dev/version)" = "$current" ] || fail "the version here has changed"

# A tarball of the tarball is the same.
make -s -C "$fresh" dist >"$tmp/name"
mkdir "$tmp/again"
tar -C "$tmp/again" -xf "$fresh/$(cat "$tmp/name")"
rm -rf "$fresh/build" "$fresh/$(cat "$tmp/name")"
diff -r "$fresh" "$tmp/again/gpuraid-9.8.7" || fail "not the same again"
