#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Sixteen processes of ibv_rc_pingpong at the same time, all polling without pause, on however few
# cores there are: each must get its turn, and all of them end well, with the right data.

set -u

if [ -z "${VB_IN_NAMESPACE:-}" ]; then
	unshare -rn true 2>/dev/null || exit 77
	VB_IN_NAMESPACE=1 exec unshare -rn "$0"
fi
command -v ibv_rc_pingpong >/dev/null || exit 77
ip link set lo up
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -r "$folder"' EXIT
pairs=8

pingpong() {
	timeout 120 "$VB_BUILD_RELEASE/verbatim" run ibv_rc_pingpong -d vb_lo -g 1 -n 5000 -c "$@"
}

for pair in $(seq $pairs); do
	pingpong -p $((18600 + pair)) >"$folder/server$pair" 2>&1 &
	servers[pair]=$!
done
for pair in $(seq $pairs); do
	port=$(printf ':%04X' $((18600 + pair)))
	for _ in $(seq 600); do
		grep -q "$port 0\+:0000 0A" /proc/net/tcp /proc/net/tcp6 && break
		sleep 0.1
	done
	pingpong -p $((18600 + pair)) 127.0.0.1 >"$folder/client$pair" 2>&1 &
	clients[pair]=$!
done

failed=0
for pair in $(seq $pairs); do
	for end in server client; do
		[ $end = server ] && process=${servers[pair]} || process=${clients[pair]}
		wait "$process" && continue
		echo "the $end of pair $pair failed:"
		cat "$folder/$end$pair"
		failed=1
	done
done
exit $failed
