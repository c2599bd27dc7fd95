#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# iSER: a target of Debian's tgt with one disk, and as initiators the tools of libiscsi and qemu-img.
# docs/STORAGE.md has the same commands. tgt asks for two rules on an iSER target, for the
# initiator's address and for its name.
#
# libiscsi has faults of its own, which every adapter meets. A transfer of more than 256 KB over iSER
# does not fit its buffers: it fails, and then free() finds the heap damaged. A process that
# closes one session and opens another crashes: the thread that waits for events of the first goes
# on with what was freed. So the tools get pieces of 256 KB, and one family of tests each; for the
# same reason iscsi-test-cu's Async family is not here.

. "$(dirname "$0")/support_hosts.sh"
only_if_asked
need_programs tgtd tgtadm iscsi-inq iscsi-perf iscsi-test-cu qemu-img qemu-io \
	/usr/lib/x86_64-linux-gnu/qemu/block-iscsi.so
make_hosts
target=iqn.2026-11.example:disk
initiator=iqn.2026-11.example:client
store=$output.store
mkdir "$store"
trap 'rm -rf "$store"; end_hosts' EXIT
export TGT_IPC_SOCKET=$store/tgtd
bytes=$((24 << 20))
head -c $bytes /dev/urandom >"$store/data"
split -b 256k -d -a 3 "$store/data" "$store/piece."

adm() {
	tgtadm --lld iser "$@"
}

can_ask() {
	adm --op show --mode system >/dev/null 2>&1
}

# The target with its disk, which outlives it.
start_target() {
	rm -f "$TGT_IPC_SOCKET"*
	start server tgtd tgtd --foreground --iser port=3261 --iscsi portal=127.0.0.1:3262
	tgtd=$pid
	await 20 can_ask &&
		adm --op new --mode target --tid 1 --targetname $target &&
		adm --op new --mode logicalunit --tid 1 --lun 1 --backing-store "$store/disk" &&
		adm --op bind --mode target --tid 1 --initiator-address ALL &&
		adm --op bind --mode target --tid 1 --initiator-name $initiator
}

make_target() {
	rm -f "$store/disk" "$store/back"
	truncate -s 32M "$store/disk"
	url=iser://$server_address:3261/$target/1
	image=driver=iscsi,transport=iser,portal=$server_address:3261,target=$target,lun=1,initiator-name=$initiator
	start_target
}

write_data() {
	local words=() piece

	for piece in "$store"/piece.*; do
		words+=(-c "write -s $piece $((10#${piece##*.} * 256))k 256k")
	done
	run client write qemu-io --image-opts $image "${words[@]}" && cmp -n $bytes "$store/data" "$store/disk"
}

read_data() {
	run client read qemu-img dd --image-opts -O raw bs=256k if=$image of="$store/back" &&
		cmp -n $bytes "$store/data" "$store/back"
}

ask_who() {
	make_target && run client inquiry iscsi-inq -i $initiator $url && says inquiry 'Vendor:IET' &&
		{ run client stranger iscsi-inq -i $initiator.other $url; says stranger 'Target not found'; } &&
		run client capacity iscsi-readcapacity16 -i $initiator $url && says capacity 'Total size:33554432'
}

store_data() {
	make_target && write_data && read_data
}

# The tool compares what it reads with what it wrote.
test_commands() {
	local family

	make_target || return
	for family in Read10.Simple Read10.DpoFua Write10.Simple WriteSame10.Simple WriteVerify10.Simple; do
		run client $family iscsi-test-cu -i $initiator -d -n -t SCSI.$family $url &&
			says $family 'tests +1 +1 +1 +0' || return
	done
}

# The initiator is killed while it reads; the target must serve the next one.
kill_initiator() {
	make_target && write_data || return
	start client load iscsi-perf -i $initiator -m 16 -b 64 $url
	await 20 says load 'iops'
	kill -9 $pid
	read_data
}

# The target is killed while it is read, and started again: what was written is there.
kill_target() {
	make_target && write_data || return
	start client load iscsi-perf -i $initiator -m 16 -b 64 $url
	await 20 says load 'iops' || return
	kill -9 $tgtd
	await 5 is_gone $tgtd
	start_target && read_data
}

for place in host loop wire; do
	go_to $place
	check "iSER, inquiry and access rules" ask_who
	check "iSER, written, read back and compared" store_data
	check "iSER, SCSI commands" test_commands
	check "iSER, initiator killed" kill_initiator
	check "iSER, target killed and started again" kill_target
done
tell_result
