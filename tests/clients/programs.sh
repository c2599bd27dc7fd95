#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Programs of the distribution, unmodified, talk to each other through `verbatim run`: a server and a client on
# loopback, over IPv4 and IPv6. Each line of the list at the end is one test: it passes if both ends exit with 0.

set -u

# A network of its own, where this user may make one: whatever else runs on this machine shares no port with it.
if [ -z "${VB_IN_NAMESPACE:-}" ] && unshare -rn true 2>/dev/null; then
	VB_IN_NAMESPACE=1 exec unshare -rn "$0"
fi
[ -z "${VB_IN_NAMESPACE:-}" ] || ip link set lo up
verbatim=$VB_BUILD_RELEASE/verbatim
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
passed=0 failed=0 skipped=0
export VERBATIM_DEVICES=lo

# Waits until the server listens on its TCP port, as these programs exchange addresses over TCP.
await_port() {
	for _ in $(seq 100); do
		grep -q "$(printf ':%04X 00000000.*:0000 0A\|:%04X 0000000000.*:0000 0A' "$1" "$1")" \
			/proc/net/tcp /proc/net/tcp6 && return
		sleep 0.05
	done
}

# try <program> <options>...: the same command as server and, with the server's name behind it, as client.
try() {
	if ! command -v "$1" >/dev/null; then
		skipped=$((skipped + 1))
		echo "skip  $1 is not installed"
		return
	fi
	port=$((20000 + RANDOM % 20000))
	timeout 60 "$verbatim" run "$@" -p $port >"$directory/server" 2>&1 &
	server=$!
	await_port $port
	timeout 60 "$verbatim" run "$@" -p $port localhost >"$directory/client" 2>&1
	client_status=$?
	wait $server
	server_status=$?
	if [ $client_status -eq 0 ] && [ $server_status -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL  $*: client $client_status, server $server_status"
		tail -n 5 "$directory/server" "$directory/client"
	fi
}

pingpong() {
	program=$1
	shift
	try "$program" -d vb_lo -g 1 "$@"
}

perftest() {
	program=$1
	shift
	try "$program" -d vb_lo -x 1 -F "$@"
}

pingpong ibv_rc_pingpong
pingpong ibv_rc_pingpong -c -s 100000 -n 50
pingpong ibv_rc_pingpong -e
pingpong ibv_rc_pingpong -N
pingpong ibv_rc_pingpong -o
pingpong ibv_rc_pingpong -t
pingpong ibv_rc_pingpong -j
pingpong ibv_rc_pingpong -m 256 -s 10000 -n 200
pingpong ibv_uc_pingpong
pingpong ibv_ud_pingpong -s 1024
pingpong ibv_srq_pingpong
pingpong ibv_srq_pingpong -e
pingpong ibv_xsrq_pingpong
try ibv_rc_pingpong -d vb_lo -g 0

perftest ib_write_bw -n 500
perftest ib_write_bw -n 200 -s 1048576
perftest ib_write_bw -n 200 -q 16
perftest ib_write_bw -n 500 -b
perftest ib_write_bw -n 500 -m 256
perftest ib_write_lat -n 200
perftest ib_read_bw -n 300
perftest ib_read_lat -n 200
perftest ib_send_bw -n 500
perftest ib_send_bw -n 300 -e
perftest ib_send_bw -n 300 -r 64 --use-srq
perftest ib_send_lat -n 300
perftest ib_send_lat -n 300 -c UC
perftest ib_send_lat -n 300 -c UD
perftest ib_atomic_bw -n 300
perftest ib_atomic_lat -n 200

echo "# passed=$passed failed=$failed skipped=$skipped"
[ $failed -eq 0 ]
