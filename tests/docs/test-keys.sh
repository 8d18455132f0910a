#!/bin/bash
# test-keys.sh: the keys that are read are those of --help, which
# tests/docs/test-manual.py compares with the manual.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

source tests/functions.sh
need nbdkit

# The table in array/config/keys.c.
sed -n '/^} keys\[\] = {/,/^};/s/^  { "\([a-z-]*\)".*/\1/p' array/config/keys.c |
  sort > "$tmp/read"
[ "$(wc -l < "$tmp/read")" -ge 18 ] || fail "no table of keys found"

# --help: everything that looks like a key, below the description.
LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
  nbdkit "$plugin" --help > "$tmp/help"
sed -n '/^\[member=\]/,$p' "$tmp/help" | grep -o '\b[a-z-]*=' |
  tr -d = | sort -u > "$tmp/helped"
diff "$tmp/read" "$tmp/helped" ||
  fail "--help (>) does not have the keys that are read (<)"

# Each of them is known; nothing else is.
while read -r key; do
  for value in '' /; do
    if LD_PRELOAD=$san_preload ASAN_OPTIONS=$san_asan TSAN_OPTIONS=$san_tsan \
         timeout 30 nbdkit -U - "$plugin" "$key=$value" --run true \
         2>"$tmp/err"; then
      fail "$key=$value alone made a server"
    fi
    ! grep -q unknown "$tmp/err" || fail "$key is not known"
  done
done < "$tmp/read"
