#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# fio's rdma engine with several jobs and with verified data. A job of the engine is one connection
# with a port of its own, so each has its number. Only messages can be verified: the receiver checks
# the header and the checksum that the sender put into each block. With one-sided verbs the other
# end does not see what came; the jobs of all verbs run at the same time.

. "$(dirname "$0")/support_hosts.sh"
only_if_asked
need_programs fio
make_hosts

all_listen() {
	[ "$(grep -oE '/listens/.*' /proc/$1/net/unix | sort -u | wc -l)" -ge $2 ]
}

# verify [more for the client]: the server checks every block. With a wrong sender it must notice.
verify() {
	local server common="--ioengine=rdma --bs=32k --size=8m --iodepth=8 --verify=crc32c --port=7200"

	start server server fio --name=server $common --rw=read --verb=recv
	server=$pid
	await 20 all_listen $server 1 &&
		run client client fio --name=client $common --rw=write --verb=send --do_verify=0 \
			--hostname=$server_address "$@" && ends $server && says server 'err= 0' && says client 'err= 0'
}

# The same without a checksum in the blocks: the server must complain. Its client would wait for ever.
find_wrong() {
	! time_max=5 verify --verify=null && says server 'verify: bad|bad header|bad magic'
}

# Four jobs, each with a verb of its own.
share() {
	local common="--ioengine=rdma --bs=64k --size=8m --iodepth=8" server

	start server server fio $common --rw=read --name=a --port=7201 --verb=recv --name=b --port=7202 --verb=write \
		--name=c --port=7203 --verb=read --name=d --port=7204 --verb=recv
	server=$pid
	await 20 all_listen $server 4 &&
		run client client fio $common --rw=write --hostname=$server_address --name=a --port=7201 --verb=send \
			--name=b --port=7202 --verb=write --name=c --port=7203 --verb=read --name=d --port=7204 --verb=send &&
		ends $server && [ "$(grep -c 'err= 0' "$output/client")" = 4 ] && [ "$(grep -c 'err= 0' "$output/server")" = 4 ]
}

for place in host loop wire; do
	go_to $place
	check "fio, verified" verify
	check "fio, four jobs, all verbs" share
done
check "fio notices wrong data" find_wrong
tell_result
