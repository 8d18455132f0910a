#!/usr/bin/env bash
# gpuraid test: a short run of each fuzzer, as many inputs each time.
#
#   FUZZ_SECONDS   run each for this time instead
#   SEED           a number, or random; 1 unless given
#
# Findings of a fuzzer are left in build/fuzz/ and named in its output.
#
# SPDX-License-Identifier: BSD-3-Clause
# run-tests: no-sanitizer

set -e
cd "$(dirname "$0")/.."

if ! command -v clang > /dev/null; then
    echo "test-fuzz: clang is not installed"
    exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
echo 'int LLVMFuzzerTestOneInput (const char *d, unsigned long n)
{ return 0; }' > "$tmp/try.c"
if ! clang -fsanitize=fuzzer,address,undefined -o "$tmp/try" "$tmp/try.c" \
    2> /dev/null; then
    echo "test-fuzz: clang has no fuzzer runtime (libclang-rt-*-dev)"
    exit 77
fi

SEED=${SEED:-1}
if [ "$SEED" = random ]; then
    SEED=$RANDOM
fi
echo "SEED=$SEED"
make -s fuzz SAN=
for f in tests/fuzz-*.c; do
    name=$(basename "$f" .c)
    mkdir "$tmp/$name"
    length=-runs=20000
    if [ "$name" = fuzz-pages ]; then
        length=-runs=250000     # these are quick
    fi
    if [ -n "$FUZZ_SECONDS" ]; then
        length=-max_total_time=$FUZZ_SECONDS
    fi
    if ! "build/fuzz/$name" -seed="$SEED" -max_len=65536 \
         "$length" -timeout=10 -rss_limit_mb=2048 \
         -artifact_prefix="build/fuzz/$name-" \
         "$tmp/$name" > "$tmp/log" 2>&1; then
        echo "$name failed:"
        tail -n 60 "$tmp/log"
        exit 1
    fi
    echo "$name: $(grep '^Done' "$tmp/log")"
done
