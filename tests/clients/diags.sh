#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What the tools of infiniband-diags, srptools and ibacm find. ibstat and ibstatus show a RoCE port
# as they do for any adapter. srptools and ibacm are for the InfiniBand link layer: with RoCE
# adapters of any make, ibsrpdm says that it does not support Ethernet, and ibacm finds no port and
# ends. ib_acme writes ibacm's configuration, with all devices, in either case.

. "$(dirname "$0")/support_hosts.sh"
need_programs ibstat ibstatus
make_hosts

# expect <name of output> <pattern>...: each must be there.
expect() {
	local name=$1 pattern

	shift
	for pattern; do
		says "$name" "$pattern" || { echo "not said: $pattern"; return 1; }
	done
}

ask_ibstat() {
	run client ibstat ibstat vb_wire &&
		expect ibstat "^CA 'vb_wire'" 'Number of ports: 1' 'Node GUID: 0x[0-9a-f]{16}' 'State: Active' \
			'Physical state: LinkUp' 'Rate: 10$' 'Base lid: 0' 'SM lid: 0' 'Port GUID: 0x0000000000010001' \
			'Link layer: Ethernet' && run client list ibstat -l && expect list '^vb_wire$' '^vb_lo$' &&
		run client guids ibstat -p && expect guids '^0x0000000000010001$'
}

ask_ibstatus() {
	run client ibstatus ibstatus vb_wire &&
		expect ibstatus "^Infiniband device 'vb_wire' port 1 status:" \
			'default gid:.* fe80:0000:0000:0000:0000:0000:0001:0001' 'state:.* 4: ACTIVE' \
			'phys state:.* 5: LinkUp' 'rate:.* 10 Gb/sec' 'link_layer:.* Ethernet'
}

ask_ibsrpdm() {
	run client ibsrpdm ibsrpdm -c
	expect ibsrpdm 'Unsupported link layer Ethernet'
}

ask_ibacm() {
	run client ib_acme ib_acme -A -O -D "$output" && expect ibacm_addr.cfg 'vb_wire 1 default' 'vb_lo 1 default' &&
		sed -i "s,^log_file .*,log_file $output/log,; s,^log_level .*,log_level 2,; s,^lock_file .*,lock_file $output/pid," \
			"$output/ibacm_opts.cfg" &&
		! run client ibacm ibacm -P -A "$output/ibacm_addr.cfg" -O "$output/ibacm_opts.cfg" &&
		expect log 'vb_wire port 1 is not an InfiniBand port' 'vb_lo port 1 is not an InfiniBand port' 'no devices'
}

# try <program> <what it is> <command>: skipped if the program is not installed.
try() {
	command -v $1 >/dev/null || { echo "skip  $1 is not installed"; skipped=$((skipped + 1)); return; }
	check "$2" "$3"
}

go_to wire
check ibstat ask_ibstat
check ibstatus ask_ibstatus
try ibsrpdm "ibsrpdm finds no InfiniBand port" ask_ibsrpdm
try ibacm "ibacm finds no InfiniBand port" ask_ibacm
tell_result
