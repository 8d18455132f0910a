#!/bin/bash
# test-pictures.sh: the pictures in docs/pictures/ are those that
# scripts/dev/make-pictures draws now, so a plot shows the numbers of its table.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer
# run-tests: inputs=docs,scripts

set -eu -o pipefail
cd "$(dirname "$0")/../.."

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail ()
{
  echo "$0: $*" >&2
  exit 1
}

scripts/dev/make-pictures "$tmp/now"
diff -rq docs/pictures "$tmp/now" ||
  fail "a table in docs/benchmarks.md has changed: run make-pictures"

# Well-formed, and each is in a document.
for f in docs/pictures/*.svg; do
  /usr/bin/python3 -c 'import sys, xml.dom.minidom
xml.dom.minidom.parse(sys.argv[1])' "$f" || fail "$f is no XML"
  grep -qF "pictures/${f##*/})" README.md docs/*.md ||
    fail "$f: no document shows it"
done

# A number in a table that is plotted changes the plot.
mkdir "$tmp/tree"
cp -r scripts docs "$tmp/tree"
sed -i 's/^| 4+2 | encode | simd | /&1/' \
  "$tmp/tree/docs/benchmarks.md"
! cmp -s docs/benchmarks.md "$tmp/tree/docs/benchmarks.md" ||
  fail "the table has other numbers now: change this test"
"$tmp/tree/scripts/dev/make-pictures" "$tmp/changed"
! cmp -s "$tmp/now/bench-encode.svg" "$tmp/changed/bench-encode.svg" ||
  fail "the plot does not show the table"

# A table that is not there is an error.
grep -v '^| bytes written to members per byte' docs/benchmarks.md \
  >"$tmp/tree/docs/benchmarks.md"
! "$tmp/tree/scripts/dev/make-pictures" "$tmp/changed" 2>"$tmp/err" ||
  fail "a table is missing, and that is no error"
[ "$(wc -l <"$tmp/err")" = 1 ] || fail "not one line: $(cat "$tmp/err")"
