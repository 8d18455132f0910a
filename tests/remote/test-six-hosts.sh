#!/bin/bash
# test-six-hosts: an array over six hosts, which are network namespaces, with
# TLS: the certificates, the unit and the Kubernetes manifest of
# docs/examples do what docs/remote.md says.
#
# run-tests: no-sanitizer
#
# SPDX-License-Identifier: BSD-3-Clause

cd "$(dirname "$0")/../.."
# Mounts and links that end with this process.
if [ -z "${GPURAID_SIX_HOSTS:-}" ]; then
  if [ "$(id -u)" != 0 ] || ! unshare --mount --net true 2>/dev/null; then
    echo "$0: skipped: not root: no network namespaces" >&2
    exit 77
  fi
  GPURAID_SIX_HOSTS=1 exec unshare --mount --net --propagation private "$0"
fi
source tests/functions.sh
need nbdkit certtool ip nbdcopy systemd-analyze
examples=docs/examples

# ---- six hosts

ip link set lo up
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
cp /etc/hosts "$tmp/hosts"
hosts=(host{0..5})
for i in {0..5}; do
  ip netns add "host$i"
  on_exit ip netns delete "host$i"
  ip link add "to$i" type veth peer name eth0 netns "host$i" ||
    skip "no veth"
  ip address add "10.77.$i.1/24" dev "to$i"
  ip link set "to$i" up
  ip -n "host$i" address add "10.77.$i.2/24" dev eth0
  ip -n "host$i" link set eth0 up
  echo "10.77.$i.2 host$i member-$i.member.default.svc" >>"$tmp/hosts"
done
mount --bind "$tmp/hosts" /etc/hosts

# ---- certificates

$examples/make-certificates "$tmp/pki" host0 host1 host2 '*.member.default.svc' ||
  fail "make-certificates"
! $examples/make-certificates "$tmp/pki" host0 2>"$tmp/err" ||
  fail "a host gets a second certificate"
$examples/make-certificates "$tmp/pki" host9 || fail "one host more"

# ---- servers: the commands of the unit, and of the manifest

# The words of the unit, for this disk and these certificates.
unit_command ()
{
  sed -n 's/^ExecStart=//p' "$examples/gpuraid-member@.service" |
    sed "s,%f,$1,; s,\${PORT},10809,; s,/etc/gpuraid/pki,$2,"
}
# Likewise, a word a line.
manifest_command ()
{
  /usr/bin/python3 - "$examples/kubernetes-members.yaml" "$@" <<'PY'
import sys
import yaml
with open(sys.argv[1]) as f:
    docs = {d['kind']: d for d in yaml.safe_load_all(f)}
pod = docs['StatefulSet']['spec']['template']['spec']
c, = pod['containers']
disk, = c['volumeDevices']
pki, = c['volumeMounts']
volumes = {v['name'] for v in pod['volumes']} | {
    v['metadata']['name']
    for v in docs['StatefulSet']['spec']['volumeClaimTemplates']}
assert {disk['name'], pki['name']} <= volumes
port = docs['Service']['spec']['ports'][0]['port']
assert '--port=%d' % port in c['command']
for word in c['command']:
    for path, ours in (disk['devicePath'], sys.argv[2]), \
            (pki['mountPath'], sys.argv[3]):
        word = word.replace(path, ours)
    print(word)
PY
}

declare -A server
serve ()
{
  local i=$1 command
  if [ "$i" -lt 3 ]; then
    read -ra command < <(unit_command "$shm/disk$i.img" "$tmp/pki/host$i")
  else
    mapfile -t command < <(manifest_command "$shm/disk$i.img" \
                             "$tmp/pki/*.member.default.svc")
  fi
  ip netns exec "host$i" "${command[@]}" >>"$tmp/server$i.log" 2>&1 &
  server[$i]=$!
  on_exit kill_ours $!
  disown $!
}
listens ()
{
  (: <"/dev/tcp/10.77.$1.2/10809") 2>/dev/null
}
tls="?tls-certificates=$tmp/pki/client"
members=()
for i in {0..5}; do
  truncate -s 40M "$shm/disk$i.img"
  serve "$i"
  [ "$i" -lt 3 ] && name=host$i || name=member-$i.member.default.svc
  members+=("nbds://$name/$tls")
done
for i in {0..5}; do
  wait_for listens "$i" || fail "no server: $(cat "$tmp/server$i.log")"
done

mkdir "$tmp/units"
cp "$examples/gpuraid-member@.service" "$tmp/units"
SYSTEMD_UNIT_PATH=$tmp/units: systemd-analyze --man=no verify \
  "$tmp/units/gpuraid-member@dev-null.service" >"$tmp/out" 2>&1 ||
  fail "the unit: $(cat "$tmp/out")"
! grep gpuraid-member "$tmp/out" || fail "the unit has mistakes"
systemd-analyze security --offline=true --threshold=25 \
  "$tmp/units/gpuraid-member@.service" >"$tmp/out" 2>&1 ||
  fail "too much is allowed: $(cat "$tmp/out")"

# ---- what is refused

# refused WORDS URI
refused ()
{
  local rc=0
  timeout 60 "$gpuraid" examine "$2" >"$tmp/out" 2>&1 || rc=$?
  [ $rc -eq 1 ] || fail "examine $2: status $rc"
  grep -qi -- "$1" "$tmp/out" || fail "examine $2: $(cat "$tmp/out")"
}
refused TLS "nbd://host0/"                      # not encrypted
refused "can't connect" "nbds://10.77.0.2/$tls" # another name
mkdir "$tmp/pki/unknown"                         # no certificate of a client
cp "$tmp/pki/ca-cert.pem" "$tmp/pki/unknown"
refused "can't\|closed" "nbds://host0/?tls-certificates=$tmp/pki/unknown"

# ---- the array

export GPURAID_CONFIG_DIR=$tmp/conf GPURAID_RUNDIR=$tmp/run
export GPURAID_PLUGIN=$plugin
mkdir "$GPURAID_CONFIG_DIR" "$GPURAID_RUNDIR"
create_array label=tank k=4 m=2
printf '%s\n' "${members[@]/#/member=}" timeout=15s \
  >"$GPURAID_CONFIG_DIR/tank.conf"
"$gpuraid" start tank 2>"$raid_log" || fail "start"
on_exit "$gpuraid" stop --force tank
uri="nbd+unix:///?socket=$GPURAID_RUNDIR/tank.sock"
control=$GPURAID_RUNDIR/tank.control
noise $((8 << 20)) >"$tmp/data"
nbdcopy --flush "$tmp/data" "$uri"

holds ()
{
  cmp -n $((8 << 20)) "$tmp/data" <(nbdcopy "$uri" -) || fail "$1"
}
holds "read back"

# Two hosts are cut off.  Nothing waits longer than timeout= and what a TCP
# connection takes to be given up.
ip -n host1 link set eth0 down
ip -n host4 link set eth0 down
noise $((8 << 20)) 2 >"$tmp/data"
SECONDS=0
timeout 60 nbdcopy --flush "$tmp/data" "$uri" || fail "writes wait"
no_longer_than 35 || fail "writes took $SECONDS s"
expect_state degraded
holds "two hosts are gone"

# They are back.  nbdkit 1.32 may end when its clients are gone, also after a while,
# and the unit would start it again: so they are started again now.
for i in 1 4; do
  kill_ours "${server[$i]}"
  ip -n "host$i" link set eth0 up
done
healthy_again ()
{
  for i in 1 4; do
    is_ours "${server[$i]}" || serve "$i"
    "$gpuraid" readd tank "$i" || :
  done
  "$gpuraid" status --quiet tank
}
wait_for healthy_again || fail "not healthy again"

# The other two.
for i in 0 5; do
  "$gpuraid" fail tank "$i" || fail "fail $i"
done
holds "two others are out"
for i in 0 5; do
  "$gpuraid" readd tank "$i" || fail "readd $i"
done
timeout 60 "$gpuraid" wait tank || fail "wait"
"$gpuraid" stop tank || fail "stop"
"$gpuraid" check "${members[@]}" >/dev/null || fail "check"
