#!/usr/bin/env bash
# test-layers: check-layers and check-style find a planted violation
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

set -u
cd "$(dirname "$0")/../.." || exit 1

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

die ()
{
  echo "$*"
  cat "$tmp/out"
  exit 1
}

spdx='/* SPDX-License-Identifier: BSD-3-Clause */'

# plant FILE TEXT: a tree of one file with this text in it.
plant ()
{
  rm -rf "$tmp/tree"
  mkdir -p "$tmp/tree/$(dirname "$1")"
  printf '%s\n%b\n' "$spdx" "$2" >"$tmp/tree/$1"
}

# refuses CHECKER FILE TEXT PATTERN: planted there, the checker says so.
refuses ()
{
  plant "$2" "$3"
  if "scripts/dev/$1" "$tmp/tree" >"$tmp/out" 2>&1; then
    die "$1 is content with $2: $3"
  fi
  grep -q -e "$4" "$tmp/out" || die "$1 does not say $4 of $2: $3"
}

accepts ()
{
  plant "$2" "$3"
  "scripts/dev/$1" "$tmp/tree" >"$tmp/out" 2>&1 || die "$1 refuses $2: $3"
}

accepts check-layers array/x.c '#include "member/member.h"'
accepts check-layers array/x.c '#include "array/array.h"'
accepts check-layers nbdkit-plugin/x.c '#include <nbdkit-plugin.h>'
accepts check-layers tests/powerfail/x.c '#include <nbdkit-plugin.h>'
accepts check-layers member/x.c '#include <liburing.h>'
accepts check-layers cli/x.c '#include "control/control.h"'

plant gf/x.c '#include "gf/x.h"'
for i in $(seq 19); do
  cp "$tmp/tree/gf/x.c" "$tmp/tree/gf/x$i.c"
done
cp "$tmp/tree/gf/x.c" "$tmp/tree/gf/x.h"
if scripts/dev/check-layers "$tmp/tree" >"$tmp/out" 2>&1; then
  die "check-layers is content with 21 files"
fi
grep -q '^gf/: 21 files' "$tmp/out" || die "of 21 files: $(cat "$tmp/out")"
rm "$tmp/tree/gf/x1.c"
scripts/dev/check-layers "$tmp/tree" >"$tmp/out" 2>&1 || die "20 files: $(cat "$tmp/out")"

for folder in common raidmap gf member array control cli measure bench tests; do
  refuses check-layers $folder/x.h '#include <nbdkit-plugin.h>' "$folder/x.h:2"
done
for header in cuda_runtime.h libnbd.h liburing.h liburing/io_uring.h; do
  refuses check-layers array/x.c "#include <$header>" 'array/x.c:2'
done
refuses check-layers common/x.h '#include "raidmap/layout/layout.h"' 'may not use'
refuses check-layers raidmap/x.c '#include "gf/coder.h"' 'may not use'
refuses check-layers gf/x.c '#include "member/loop.h"' 'may not use'
refuses check-layers member/x.c '#include "array/array.h"' 'may not use'
refuses check-layers array/x.c '#include "control/control.h"' 'may not use'
refuses check-layers array/sub/x.c '#  include "cli/cli.h"' 'may not use'
refuses check-layers control/x.c '#include "gf/coder.h"' 'may not use'
refuses check-layers cli/x.c '#include "nbdkit-plugin/p.h"' 'may not use'
refuses check-layers cli/x.c '#include "bench/gpu.h"' 'may not use'
refuses check-layers array/x.c '#include "../gf/coder.h"' 'from the root'
refuses check-layers array/x.c '#include <gf/coder.h>' 'with ""'
refuses check-layers array/x.c '#include "nothere.h"' 'beside this file'
refuses check-layers array/x.c '#include "misc/x.h"' 'not in the table'
refuses check-layers misc/x.c '' 'not in the table'

# The rooms of array/.
accepts check-layers array/ops/x.c '#include "array/plan/x.h"'
accepts check-layers array/ops/x.c '#include "array/ops/x.h"'
accepts check-layers array/plan/x.c '#include "array/array.h"'
accepts check-layers array/x.c '#include "array/request/x.h"'
accepts check-layers cli/offline/x.c '#include "array/open/x.h"'
refuses check-layers array/plan/x.c '#include "array/ops/x.h"' \
  'array/plan/x.c:2: .* above array/plan/'
refuses check-layers array/request/x.h '#include "array/main-loop.h"' 'above'
refuses check-layers array/array.h '#include "array/ops/ops.h"' 'above array/array.h'
refuses check-layers array/cellar/x.c '#include "common/x.h"' 'list of rooms'
refuses check-layers array/x.c '#include "array/cellar/x.h"' 'list of rooms'

# Those of others; the folder itself need not be the highest.
accepts check-layers attach/x.c '#include "attach/ask/x.h"'
accepts check-layers attach/server/x.c '#include "attach/request.h"'
refuses check-layers attach/way/x.c '#include "attach/ask/x.h"' \
  'above attach/way/'
refuses check-layers attach/ask/x.c '#include "attach/owner.h"' \
  'above attach/ask/'
accepts check-layers gf/cpu/x.c '#include "gf/coder.h"'
refuses check-layers gf/xor/x.c '#include "gf/coder.h"' 'above gf/xor/'
accepts check-layers common/threads/x.c '#include "common/log.h"'
refuses check-layers common/log.c '#include "common/threads/x.h"' \
  'above common/log.c'
refuses check-layers common/cellar/x.c '#include "common/x.h"' 'list of rooms'
refuses check-layers array/x.txt '' 'no source files'

accepts check-style array/x.c 'int x;'
refuses check-style array/x.c '\tint x;' 'array/x.c:2: a tab'
refuses check-style array/x.c 'int x; ' 'array/x.c:2: space at the end'
refuses check-style array/x.c '/* TO''DO */' 'array/x.c:2: an open end'
refuses check-style array/x.c "/* $(printf '%080d' 0) */" '80 columns'
refuses check-style array/x.c '  err = pthread_create (&t, NULL, f, a);' \
  'array/x.c:2: a thread without thread_start'
refuses check-style array/x.c '#include "array/b.h"\n#include "array/a.h"' \
  'array/x.c:3: includes are not in order'
accepts check-style array/x.c \
  '#include "array/b-a.h"\n#include "array/b.h"\n\n#include "array/a.h"'
accepts check-style attach/x.c '  err = pthread_create (&t, NULL, f, a);'
refuses check-style array/x.c '/* W''hoever waits. */' \
  'array/x.c:2: a word to avoid: W''hoever'
refuses check-style docs/x.md 'An er''rand.' \
  'docs/x.md:2: a word to avoid: er''rand'
accepts check-style array/x.c '/* The whole, not one part. */'
spdx=
refuses check-style array/x.c 'int x;' 'no SPDX'
