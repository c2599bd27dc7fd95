#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Live migration of a guest between two QEMUs by "rdma:", with a guest that rests and one that
# changes its memory, with and without rdma-pin-all; and by "tcp:", to compare the times that each
# line tells. migration/migrate.py compares the memory of both ends.
#
# By tcp: the pages are one stream. By rdma: QEMU asks the target to register each MB before it writes
# there, and waits for the answer; and it waits for an answer when a MB is all zeros. Each answer
# takes several wakes of sleeping threads, of QEMU and of our helpers; where a busy guest or other
# programs have the CPUs, the wakes are most of the time, and it differs much from run to run.

. "$(dirname "$0")/support_hosts.sh"
only_if_asked
need_programs qemu-system-x86_64 gcc ld python3
make_hosts
sectors=$output.sectors
mkdir "$sectors"
trap 'rm -rf "$sectors"; end_hosts' EXIT
for busy in 0 1; do
	gcc -c -m32 -DBUSY=$busy -o "$sectors/object" "$here/migration/guest.S" &&
		ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o "$sectors/$busy" "$sectors/object" || exit 1
done

# move <sector> <tcp or rdma> [--pin-all]
move() {
	local sector=$sectors/$1 uri=$2:$server_address:7400

	shift 2
	mkdir "$output/memory"
	timeout -k 5 120 python3 "$here/migration/migrate.py" "$output/memory" "$sector" $uri "$@" \
		--source "$(echo $(words_of client)) $verbatim run" --target "$(echo $(words_of server)) $verbatim run" \
		>"$output/times" 2>"$output/said" && cp "$output/times" "$sectors/times"
}

# tell_times <what it is> <arguments of move>...
tell_times() {
	: >"$sectors/times"
	check "migration, $1" move "${@:2}"
	sed 's/^/      /' "$sectors/times"
}

for place in host wire; do
	go_to $place
	tell_times "resting guest, tcp" 0 tcp
	tell_times "resting guest, rdma" 0 rdma
	tell_times "resting guest, rdma, pinned" 0 rdma --pin-all
	tell_times "busy guest, tcp" 1 tcp
	tell_times "busy guest, rdma" 1 rdma
	tell_times "busy guest, rdma, pinned" 1 rdma --pin-all
done
tell_result
