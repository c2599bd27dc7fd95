#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ibv_asyncwatch, unmodified, reports what happens to an interface: a new address, down, up.

set -u

if [ -z "${VB_IN_NAMESPACE:-}" ]; then
	unshare -rn true 2>/dev/null || exit 77
	VB_IN_NAMESPACE=1 exec unshare -rn "$0"
fi
command -v ibv_asyncwatch >/dev/null || exit 77
for kind in dummy ifb; do
	ip link add d0 type $kind 2>/dev/null && break
done
ip link show d0 >/dev/null 2>&1 || exit 77
ip link set d0 addrgenmode none up
ip address add 10.0.0.1/24 dev d0
output=$(mktemp)
trap 'kill $watcher; wait $watcher 2>/dev/null; rm "$output"' EXIT
stdbuf -oL "$VB_BUILD_RELEASE/verbatim" run ibv_asyncwatch -d vb_d0 >"$output" 2>&1 &
watcher=$!

# Waits until the program has printed this.
await() {
	for _ in $(seq 200); do
		grep -q "$1" "$output" && return
		sleep 0.05
	done
	echo "ibv_asyncwatch did not say: $1"
	cat "$output"
	exit 1
}

await 'async event FD'
ip address add 10.0.1.1/24 dev d0
await 'IBV_EVENT_GID_CHANGE'
ip link set d0 down
await 'IBV_EVENT_PORT_ERR'
ip link set d0 up
await 'IBV_EVENT_PORT_ACTIVE'
