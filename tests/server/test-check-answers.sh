#!/usr/bin/env bash
# gpuraid check tests crc32c and the coder against known answers first: with a
# library that computes wrongly it says so, and neither blames the members nor
# writes to them.
#
# run-tests: no-sanitizer
# A preloaded library comes before the sanitizer's.
#
# SPDX-License-Identifier: BSD-3-Clause

source tests/functions.sh
need gcc nbdcopy

# wrong NAME: a library in which one function of ISA-L is wrong.
wrong ()
{
  gcc -shared -fPIC -O1 -o "$tmp/$1.so" -x c - -ldl <<C
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
$2
C
}

wrong crc '
unsigned int crc32_iscsi (unsigned char *p, int n, unsigned int crc)
{
  unsigned int (*f) (unsigned char *, int, unsigned int) =
    dlsym (RTLD_NEXT, "crc32_iscsi");
  return f (p, n, crc) ^ (n >= 1024);
}'
wrong encode '
void ec_encode_data (int len, int k, int rows, unsigned char *t,
                     unsigned char **src, unsigned char **dst)
{
  void (*f) (int, int, int, unsigned char *, unsigned char **,
             unsigned char **) = dlsym (RTLD_NEXT, "ec_encode_data");
  f (len, k, rows, t, src, dst);
  dst[0][len - 1] ^= 1;
}'

make_members 6 24M
create_array k=3 m=3 size=4M
noise 4194304 >"$tmp/data"
start_raid
timeout 60 nbdcopy "$tmp/data" "$uri"
stop_raid
"$gpuraid" check "${members[@]}" || fail "status $?"
sha256sum "${members[@]}" >"$tmp/before"

# refused LIBRARY TEXT
refused ()
{
  local option

  for option in '' --repair; do
    if LD_PRELOAD="$tmp/$1.so" "$gpuraid" check $option "${members[@]}" \
       >"$tmp/out" 2>&1; then
      fail "check $option with a wrong $1: status 0"
    fi
    grep -q "$2" "$tmp/out" ||
      fail "check $option with a wrong $1: $(cat "$tmp/out")"
    ! grep "coder=" "$tmp/out" ||
      fail "check $option with a wrong $1: it has no coder="
    sha256sum -c --quiet "$tmp/before" || fail "check $option has written"
  done
}

refused crc 'crc32c: wrong results'
if ! grep -qw gfni /proc/cpuinfo; then  # else ISA-L does not code
  refused encode 'wrong results for .* rows'
fi
"$gpuraid" check "${members[@]}" || fail "status $? afterwards"
