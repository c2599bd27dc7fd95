#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Random and mutated packets on port 4791 while two of our processes, in two networks with a cable
# between them, exchange data and check every byte (tests/interop/exchange.c). From a foreign
# address: no byte is wrong and no operation fails. In the peer's own name: operations may fail, but
# no process crashes, and no memory changes that the peer has no right to. Both tests run with the
# sanitizer build and the release build. `make test` sends 100,000 packets per test, half each way;
# `make test-all` sends a million.

set -u

if ! unshare -rn true 2>/dev/null; then
	echo "this user may make no network namespace"
	exit 77
fi
if [ -z "${VB_IN_NAMESPACE:-}" ]; then
	VB_IN_NAMESPACE=1 exec unshare -rn "$0" "$@"
fi

count=$((${VB_TEST_ALL:-0} ? 500000 : 50000)) # each way
seconds=$((60 + count / 2000))
flood=$VB_BUILD_RELEASE/tests/flood/flood
directory=$(mktemp -d)
passed=0 failed=0
started=()

# Ends the processes that this script started and removes its files.
clean_up() {
	kill "${started[@]}" 2>/dev/null
	rm -r "$directory"
}
trap clean_up EXIT

# Makes va with 10.9.0.1 here, and vb with 10.9.0.2 there, in the network of a process that only
# sleeps. Packets are segmented before they reach the interface, so that there are only packets as
# on a real cable.
make_wire() {
	unshare -n sleep infinity &
	there=$!
	started+=("$there")
	until [ "$(readlink /proc/$there/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
	ip link set lo up
	ip link add va type veth peer name vb netns $there
	ip link set va gso_max_segs 1 up
	ip address add 10.9.0.1/24 dev va
	there ip link set lo up
	there ip link set vb gso_max_segs 1 up
	there ip address add 10.9.0.2/24 dev vb
}

there() { nsenter -t $there -n "$@"; }

fail() {
	failed=$((failed + 1))
	echo "FAIL  $title: $*"
	tail -n 30 "$directory"/*
}

# exchange_with <build> <options>...: runs both ends, until client_pid gets the signal to stop.
exchange_with() {
	build=$1
	shift
	export ASAN_OPTIONS=detect_leaks=0
	command=(setarch -R timeout $seconds "$build/verbatim" run "$build/tests/interop/exchange" -g 1 -n 0 "$@")
	VERBATIM_DEVICES=vb there "${command[@]}" >"$directory/server" 2>&1 &
	server_pid=$!
	until there grep -q ':4853 00000000:0000 0A' /proc/net/tcp || ! kill -0 $server_pid 2>/dev/null; do
		sleep 0.05
	done
	VERBATIM_DEVICES=va "${command[@]}" 10.9.0.2 >"$directory/client" 2>&1 &
	client_pid=$!
	started+=("$server_pid" "$client_pid")
}

# try <title> <build> <source here> <source there> <pattern of the last line> <options of exchange>...
try() {
	title=$1
	source_here=$3 source_there=$4 pattern=$5
	exchange_with "$2" "${@:6}"
	there "$flood" vb $count 1 "$source_there" >"$directory/flood-there" 2>&1 &
	flood_pid=$!
	started+=("$flood_pid")
	"$flood" va $count 2 "$source_here" >"$directory/flood-here" 2>&1
	here_status=$?
	wait $flood_pid
	there_status=$?
	kill $client_pid
	wait $client_pid
	client_status=$?
	wait $server_pid
	server_status=$?
	if [ $here_status -ne 0 ] || [ $there_status -ne 0 ]; then
		fail "the flood ended with $here_status and $there_status"
	elif [ $client_status -ne 0 ] || [ $server_status -ne 0 ]; then
		fail "the ends of the exchange ended with $client_status and $server_status"
	elif ! tail -n 1 "$directory/client" | grep -q "$pattern"; then
		fail "not as it should be: $(tail -n 1 "$directory/client")"
	else
		passed=$((passed + 1))
		echo "ok    $title: $(tail -n 1 "$directory/client")"
	fi
}

make_wire
for build in "$VB_BUILD_ASAN" "$VB_BUILD_RELEASE"; do
	try "from a stranger, $(basename "$build")" "$build" 10.9.0.66 10.9.0.77 '^[1-9][0-9]* rounds .* 0 broken off$'
	try "in the peer's name, $(basename "$build")" "$build" own own '^[1-9][0-9]* rounds' -x
done
echo "# passed=$passed failed=$failed skipped=0"
[ $failed -eq 0 ]
