#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The first process of the guest (guest.py). It does what /mnt/setup says and then runs the commands that come over the
# second serial line, any number at a time: "<job> <seconds> <port> <command>". It answers "listening <job>" when somebody
# listens on the port, if one is named, with TCP or by the connection manager, and "ended <job> <status>". Output goes to
# /mnt/job<job>.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Open all the time: what comes while nobody has it open is lost.
exec 3<>/dev/ttyS1
stty raw -echo <&3

await_port() {
	pattern=$(printf ':%04X 0*:0000 0A' "$1")
	until grep -q "$pattern" /proc/net/tcp /proc/net/tcp6; do
		if rdma resource show cm_id 2>/dev/null | grep -q "state LISTEN.*:$1 "; then
			sleep 0.3 # it says so a little before requests are taken
			break
		fi
		sleep 0.1
	done
	echo "listening $2" >&3
}

job() {
	timeout "$2" sh -c "$4" >"/mnt/job$1" 2>&1 &
	running=$!
	if [ "$3" -ne 0 ]; then
		await_port "$3" "$1" &
		waiting=$!
	fi
	wait $running
	status=$?
	[ "$3" -eq 0 ] || kill $waiting 2>/dev/null
	echo "ended $1 $status" >&3
}

. /mnt/setup
echo up >&3
while read -r number seconds port command; do
	job "$number" "$seconds" "$port" "$command" </dev/null &
done <&3
