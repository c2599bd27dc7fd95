#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# DAPL's test programs (dapl2-utils) over its providers: cma connects by rdma_cm, scm by TCP. The
# third, ucm, connects by datagrams of its own, and cannot work on Ethernet, with any adapter: its
# addresses are LIDs, which an Ethernet port does not have (LID 0), and its address handles have no
# GRH. `dtest` refuses such a server before it opens the device; `dtestsrq` takes the LID from its
# command line, and fails when ucm creates the address handle.
#
# Not here: dtestx over scm. If the client is faster than the server (below), its connect() is
# refused, and scm's second attempt sends a request of 154 bytes on its TCP
# socket that says it has 152: the server takes the rest for the next message and gives up. Nor
# dapltest's performance test over scm between two hosts: in one of three runs the client's last
# SEND completed with an error when the server ended the connection. The cause is not known.

. "$(dirname "$0")/support_hosts.sh"
only_if_asked
need_programs dtest dtestx dtestsrq dtestcm dapltest
make_hosts
export DAT_OVERRIDE=$output.conf
trap 'rm -f "$DAT_OVERRIDE"; end_hosts' EXIT
cat >"$DAT_OVERRIDE" <<EOF
cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "wire 0" ""
scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "vb_wire 1" ""
ucm u2.0 nonthreadsafe default libdaploucm.so.2 dapl.2.0 "vb_wire 1" ""
EOF

# The programs tell each other their addresses on TCP port 15828; dtestsrq has none, and says when it
# waits.
is_ready() {
	grep -q ':3DD4 .* 0A ' /proc/$1/net/tcp || says server 'Accepting'
}

# Both ends of dtestcm and dtestsrq disconnect at the same time. Under load the second finds that it
# has been disconnected, says so, and exits with 0.
parting='Error (disconnect_eps|dat_evd_wait async evd): DAT_INVALID_(HANDLE|STATE)'

# play <program> <provider> [flags]...: one server and one client.
play() {
	local program=$1 provider=$2 server

	shift 2
	start server server stdbuf -oL $program -P $provider "$@"
	server=$pid
	await 20 is_ready $server &&
		run client client $program -P $provider "$@" -h $server_address &&
		ends $server && ! cat "$output/server" "$output/client" | grep -avE "$parting" | grep -aiE 'err(or)?[ :]|fail'
}

# dtestx tells the client its address before it listens. A client that is faster is rejected, because
# there is no such service yet (8); then both are started again.
play_dtestx() {
	local attempt

	for attempt in 1 2 3; do
		play dtestx cma && return
		says client 'non-consumer REJ, reason=8' || return
		stop_all
	done
	return 1
}

# A server for several tests. With -V the receiver compares every byte. The client exits with 0 in any
# case: its words decide.
transact() {
	local provider=$1 server

	start server server dapltest -T S -D $provider
	server=$pid
	await 20 says server 'Service Point Ready' &&
		run client client1 dapltest -T T -s $server_address -D $provider -i 100 -t 4 -w 8 \
			client SR 256 server SR 256 && says client1 'Total RDMA Read' &&
		run client client2 dapltest -T T -s $server_address -D $provider -i 50 -t 1 -w 2 -V \
			client SR 4096 3 server SR 4096 3 client RW 65536 server RR 1000000 &&
		says client2 'Total RDMA Read  : +100.00 MB' && ! says client2 'Validation|mismatch|[Ee]rror' &&
		perform $provider &&
		run client client4 dapltest -T Q -s $server_address -D $provider && ends $server
}

perform() {
	[ $1 = scm ] || {
		run client client3 dapltest -T P -s $server_address -D $1 -i 1000 -p 64 -m p RW 4096 &&
			says client3 '^raw: RW, 1000, 4096'
	}
}

# Everything that dapltest can exhaust, 50 of each.
exhaust() {
	run client client dapltest -T L -D $1 -w 2 -m 50 limit_ia limit_pz limit_evd limit_ep limit_psp \
		limit_lmr && says client 'IAs opened: +50' && ! says client 'fails'
}

refuse_lid() {
	local server

	start server server stdbuf -oL dtestsrq -P ucm -v
	await 20 says server 'flowinfo\(QPN\)=0x[0-9a-f]+, port\(LID\)=0x0' && await 20 says server Accepting || return
	VERBATIM_LOG=warn run client client dtestsrq -P ucm -l 0 -q \
		$(sed -n 's/.*flowinfo(QPN)=\(0x[0-9a-f]*\).*/\1/p' "$output/server")
	says client 'warn: an address without GRH' && says client 'DAT_INSUFFICIENT_RESOURCES'
}

refuse_server() {
	start server server dtest -P ucm
	await 20 says server 'Server is waiting for client' && ! run client client dtest -P ucm -h $server_address &&
		says client 'No valid data was received from the server'
}

for place in host loop wire; do
	go_to $place
	check "dtestx cma" play_dtestx
	for provider in cma scm; do
		check "dtest $provider" play dtest $provider
		check "dtest $provider, compared" play dtest $provider -W -D -b 65536 -B 100
		check "dtestsrq $provider" play dtestsrq $provider -c 10 -B 10
		check "dtestcm $provider" play dtestcm $provider -c 100
		check "dapltest $provider" transact $provider
	done
done
check "dapltest cma, limits" exhaust cma
check "dapltest scm, limits" exhaust scm
check "dtest ucm is refused: no LID" refuse_server
check "dtestsrq ucm is refused: no GRH" refuse_lid
tell_result
