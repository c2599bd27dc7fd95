#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# gloo's ibverbs transport, with a program of ours (gloo/reduce.cc): all-reduce among 2 to 8 ranks,
# by two algorithms, compared. On the wire every second rank is on the other host. reduce.cc tells
# why it pauses before it ends.

. "$(dirname "$0")/support_hosts.sh"
only_if_asked
need_programs g++ /usr/include/gloo/transport/ibverbs/device.h
make_hosts
program=$output.reduce
trap 'rm -f "$program"; end_hosts' EXIT
g++ -O2 -std=c++17 -o "$program" "$here/gloo/reduce.cc" -lgloo -libverbs -lpthread || exit 1

# reduce <ranks>
reduce() {
	local rank pids=()

	mkdir "$output/store"
	for ((rank = 0; rank < $1; rank++)); do
		start $([ $((rank % 2)) = 0 ] && echo server || echo client) rank$rank "$program" $rank $1 "$output/store" \
			vb_wire 1000
		pids+=($pid)
	done
	for pid in "${pids[@]}"; do ends $pid || return; done
	[ "$(cat "$output"/rank* | grep -c 'all sums are right')" = $1 ]
}

for place in host loop wire; do
	go_to $place
	for ranks in 2 4 8; do
		check "gloo, $ranks ranks" reduce $ranks
	done
done
tell_result
