#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A Ceph cluster with one monitor and one OSD, which keeps its objects in memory, all of whose
# messages go by RDMA (ms_type = async+rdma). docs/STORAGE.md has the same settings. An OSD in memory
# forgets its objects and its pools when it is killed, so a new pool is used after that.

. "$(dirname "$0")/support_hosts.sh"
only_if_asked
need_programs ceph-mon ceph-osd ceph rados monmaptool
make_hosts
cluster=$output.cluster
head -c 8M /dev/urandom >"$output.data"
trap 'rm -rf "$cluster" "$output.data"; end_hosts' EXIT

write_settings() {
	cat >"$cluster/ceph.conf" <<-EOF
	[global]
	fsid = $1
	mon host = v2:$server_address:3300
	auth cluster required = none
	auth service required = none
	auth client required = none
	ms type = async+rdma
	ms async rdma device name = vb_wire
	ms async rdma buffer size = 65536
	ms async rdma receive buffers = 1024
	ms async rdma receive queue len = 1024
	ms async rdma send buffers = 256
	ms bind msgr1 = false
	osd pool default size = 1
	osd pool default min size = 1
	osd crush chooseleaf type = 0
	mon allow pool size one = true
	osd objectstore = memstore
	run dir = $cluster
	log file = $cluster/\$name.log
	admin socket =
	[mon.a]
	mon data = $cluster/mon
	[osd.0]
	osd data = $cluster/osd
	EOF
}

# ceph_at <end> <name of output> <program> [arguments]...
ceph_at() {
	run $1 $2 $3 -c "$cluster/ceph.conf" "${@:4}"
}

answers() {
	time_max=5 ceph_at server answer ceph mon stat
}

is_up() {
	time_max=10 ceph_at server tree ceph osd stat && says tree '1 up'
}

start_osd() {
	start server osd ceph-osd -c "$cluster/ceph.conf" -f -i 0
	osd=$pid
	await 40 is_up
}

make_cluster() {
	local id osd_id

	rm -rf "$cluster"
	mkdir -p "$cluster/mon" "$cluster/osd"
	id=$(cat /proc/sys/kernel/random/uuid) osd_id=$(cat /proc/sys/kernel/random/uuid)
	write_settings $id
	monmaptool --create --addv a "[v2:$server_address:3300]" --fsid $id "$cluster/monmap" &&
		ceph_at server mkfs ceph-mon --mkfs -i a --monmap "$cluster/monmap" || return
	start server mon ceph-mon -c "$cluster/ceph.conf" -f -i a
	await 40 answers && ceph_at server new ceph osd new $osd_id &&
		ceph_at server mkfs ceph-osd -i 0 --mkfs --osd-uuid $osd_id && start_osd
}

# put_and_get <pool>
put_and_get() {
	ceph_at client pool ceph osd pool create $1 8 &&
		ceph_at client put rados -p $1 put object "$output.data" &&
		ceph_at client get rados -p $1 get object "$cluster/back" && cmp "$output.data" "$cluster/back"
}

# Objects of 8 MB; then many short ones, which `rados bench seq` compares with what was written.
use_cluster() {
	make_cluster && put_and_get test &&
		ceph_at client write rados -p test bench 2 write -t 8 -b 65536 --no-cleanup &&
		ceph_at client seq rados -p test bench 2 seq -t 8 && says seq 'Average IOPS'
}

# The OSD is killed while it is written to, and started again.
kill_osd() {
	local osd_id load

	make_cluster && put_and_get test || return
	start client load rados -c "$cluster/ceph.conf" -p test bench 30 write -t 8 -b 65536
	load=$pid
	await 20 says load '^ +2 ' || return
	osd_id=$(cat "$cluster/osd/fsid")
	kill -9 $osd $load
	await 5 is_gone $osd
	ceph_at server mkfs ceph-osd -i 0 --mkfs --osd-uuid $osd_id && start_osd && put_and_get again
}

for place in host wire; do
	go_to $place
	check "Ceph, objects put, got and compared" use_cluster
done
check "Ceph, OSD killed and started again" kill_osd
tell_result
