#!/bin/bash
# test-nbd-tls: members over TLS, by certificates and by a shared key; what is
# not encrypted as asked, or not the server that was named, is refused.
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
source tests/functions.sh
source tests/nbd-servers.sh
need nbdkit certtool psktool nbdcopy

pki=$tmp/pki
mkdir "$pki"
psktool -u alice -p "$tmp/keys.psk" >/dev/null 2>&1 || fail "psktool"
psktool -u alice -p "$tmp/other.psk" >/dev/null 2>&1 || fail "psktool"

# certificate NAME LINE...: signed by the authority, for what the lines say
certificate ()
{
  local name=$1
  shift
  printf '%s\n' "cn = $name" "signing_key" "encryption_key" "$@" >"$tmp/$name.info"
  certtool --generate-privkey --key-type=ecdsa --outfile "$pki/$name-key.pem" \
    2>/dev/null || fail "certtool: a key for $name"
  certtool --generate-certificate --load-ca-certificate "$pki/ca-cert.pem" \
    --load-ca-privkey "$tmp/ca-key.pem" --load-privkey "$pki/$name-key.pem" \
    --template "$tmp/$name.info" --outfile "$pki/$name-cert.pem" 2>/dev/null ||
    fail "certtool: $name"
}

printf 'cn = test\nca\ncert_signing_key\n' >"$tmp/ca.info"
certtool --generate-privkey --key-type=ecdsa --outfile "$tmp/ca-key.pem" 2>/dev/null
certtool --generate-self-signed --load-privkey "$tmp/ca-key.pem" \
  --template "$tmp/ca.info" --outfile "$pki/ca-cert.pem" 2>/dev/null ||
  fail "certtool: the authority"
certificate server tls_www_server "dns_name = localhost" "ip_address = 127.0.0.1"
certificate client tls_www_client

truncate -s 16M "$shm/psk.img"
start_psk ()
{
  serve_on psk --tls=require --tls-psk="$tmp/keys.psk" file "$shm/psk.img"
}
start_psk
tcp_on cert --tls=require \
  --tls-certificates="$pki" --tls-verify-peer memory 16M
serve_on plain memory 16M

psk="nbds+unix://alice@/?socket=$shm/psk.sock&tls-psk-file=$tmp/keys.psk"
cert="nbds://localhost:$port/?tls-certificates=$pki"
members=("$psk" "$cert" "$shm/file.img")
truncate -s 16M "$shm/file.img"

# refused WORDS URI: examine says why, and has no other status than 1
refused ()
{
  local rc=0
  timeout 30 "$gpuraid" examine "$2" >"$tmp/out" 2>&1 || rc=$?
  [ $rc -eq 1 ] || fail "examine $2: status $rc"
  grep -qi -- "$1" "$tmp/out" || fail "examine $2: $(cat "$tmp/out")"
  [ "$(wc -l <"$tmp/out")" -eq 1 ] || fail "not one line: $(cat "$tmp/out")"
}
refused "TLS" "nbds+unix://alice@/?socket=$shm/plain.sock&tls-psk-file=$tmp/keys.psk"
refused "TLS" "nbd+unix:///?socket=$shm/psk.sock"
refused "can't connect" \
  "nbds+unix://alice@/?socket=$shm/psk.sock&tls-psk-file=$tmp/other.psk"
refused "can't connect" "nbds://127.0.0.2:$port/?tls-certificates=$pki"
refused "can't connect" \
  "nbds+unix://alice@/?socket=$shm/psk.sock&tls-psk-file=$tmp/nowhere"

create_array k=2 m=1
noise $((4 << 20)) >"$tmp/data"
start_raid timeout=10m
nbdcopy --flush "$tmp/data" "$uri"
cmp -n $((4 << 20)) "$tmp/data" <(nbdcopy "$uri" -) || fail "read back"

# It connects again by itself, encrypted too.
kill_server psk
start_psk
nbdsh -u "$uri" -c 'h.pwrite(b"1" * 65536, 0)' -c 'h.flush()'
log_has "connected again" || fail "not connected again"
nbdsh -u "$uri" -c 'assert h.pread(65536, 0) == b"1" * 65536'
expect_state healthy
stop_raid
