#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# librpma, the library for remote persistent memory, with a program of ours (rpma/mirror.c) that
# writes, flushes, reads, writes atomically and compares.

. "$(dirname "$0")/support_hosts.sh"
only_if_asked
need_programs /usr/include/librpma.h gcc
make_hosts
program=$output.mirror
trap 'rm -f "$program"; end_hosts' EXIT
gcc -O2 -o "$program" "$here/rpma/mirror.c" -lrpma -libverbs || exit 1

mirror() {
	local server

	start server server "$program" server $server_address 7204
	server=$pid
	await 20 grep -q /listens/ /proc/$server/net/unix && run client client "$program" client $server_address 7204 &&
		ends $server && says server 'the block is right' && says client 'the block is right'
}

for place in host loop wire; do
	go_to $place
	check librpma mirror
done
tell_result
