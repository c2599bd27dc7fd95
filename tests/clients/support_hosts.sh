# SPDX-License-Identifier: BSD-2-Clause
#
# For the scripts of this folder whose programs a row of the list cannot express; they source this
# file. It gives them two hosts, which are network namespaces of their own with a cable between
# them, and runs programs there through `verbatim run`. The device is vb_wire everywhere.
#
# A case has a place, as in the list: on "host" server and client are both on the first host and
# meet in shared memory, on "loop" they are there and send packets, on "wire" the server is on the
# second host. Scripts that take long run in `make clients` and `make test-all` only.

set -u
verbatim=$(cd "$VB_BUILD_RELEASE" && pwd)/verbatim
here=$(cd "$(dirname "$0")" && pwd)
place=wire server_address=10.0.1.2 client_address=10.0.1.1
started=() passed=0 failed=0 skipped=0 second_host=

# Goes on only where somebody asked for what takes long.
only_if_asked() {
	[ -n "${VB_TEST_ALL:-}${VB_CLIENTS:-}" ] || {
		echo "this takes long: only in make clients and make test-all"
		exit 77
	}
}

# need_programs <program or file>...
need_programs() {
	local program

	PATH=$PATH:/usr/sbin:/sbin
	for program; do
		command -v "$program" >/dev/null || [ -e "$program" ] || {
			echo "$program is not installed; make clients installs it"
			exit 77
		}
	done
}

# Starts this script again in a namespace of its own, and lays the cable to a second one. Everything
# ends with this script.
make_hosts() {
	if [ -z "${VB_IN_NAMESPACE:-}" ]; then
		unshare -rn true 2>/dev/null || {
			echo "this user may not make network namespaces"
			exit 77
		}
		# Of the processes too: some programs leave children behind when they are killed.
		VB_IN_NAMESPACE=1 exec unshare -rn --pid --fork --kill-child --mount-proc "$0" "$@"
	fi
	output=$(mktemp -d)
	cd "$output" || exit 1	# where programs leave files
	trap end_hosts EXIT
	trap 'exit 1' INT TERM HUP
	unshare -n sleep infinity &
	second_host=$!
	until [ "$(readlink /proc/$second_host/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
	ip link add wire mtu 9000 type veth peer name wire mtu 9000 netns $second_host
	lay_end 1
	lay_end 2 nsenter -t $second_host -n
}

# lay_end <number of the host> [command that enters it]
lay_end() {
	local number=$1 address

	shift
	"$@" ip link set lo up
	"$@" ip link set wire addrgenmode none up
	for address in fe80::1:$number/64 fd00:1::$number/64; do
		"$@" ip address add $address dev wire nodad
	done
	"$@" ip address add 10.0.1.$number/24 dev wire
}

end_hosts() {
	stop_all
	disown $second_host; kill -9 $second_host
	rm -rf "$output"
}

# stop_all: ends every program that was started.
stop_all() {
	[ ${#started[@]} = 0 ] || kill -9 "${started[@]}" 2>/dev/null
	for pid in "${started[@]}"; do wait $pid; done 2>/dev/null
	started=()
}

# go_to <place>
go_to() {
	place=$1 server_address=10.0.1.1
	[ $place != wire ] || server_address=10.0.1.2
}

# Prints the words that come before a command of this end (server or client).
words_of() {
	[ "$1 $place" != "server wire" ] || echo nsenter -t $second_host -n
	echo env VERBATIM_PATH=$([ $place = loop ] && echo wire || echo auto)
}

# start <end> <name of its output> <command>...: leaves it running, and sets pid.
start() {
	local end=$1 name=$2

	shift 2
	$(words_of $end) "$verbatim" run "$@" >"$output/$name" 2>&1 </dev/null &
	pid=$!
	started+=($pid)
}

# run <end> <name of its output> <command>...: waits for it, a minute at most unless time_max says
# otherwise.
run() {
	local end=$1 name=$2

	shift 2
	timeout -k 5 ${time_max:-60} $(words_of $end) "$verbatim" run "$@" >"$output/$name" 2>&1 </dev/null
}

# plainly <end> <command>...: runs it on that host, but not through `verbatim run`.
plainly() {
	local end=$1

	shift
	$(words_of $end) "$@"
}

# await <seconds> <command>...: repeats it until it succeeds.
await() {
	local deadline=$((SECONDS + $1))

	shift
	until "$@"; do
		[ $SECONDS -lt $deadline ] || { echo "waited in vain: $*"; return 1; }
		sleep 0.05
	done
}

# says <name of output> <pattern>
says() {
	grep -qaE -- "$2" "$output/$1"
}

# ends <pid>: whether the program ends, and with status 0.
ends() {
	await ${time_max:-60} is_gone $1 && wait $1
}

is_gone() {
	! kill -0 $1 2>/dev/null
}

# check <what it is> <command>...: the command decides. A failure shows what the programs said.
check() {
	local name="$place $1" status begin=${EPOCHREALTIME/./} file

	shift
	"$@" >"$output/check" 2>&1
	status=$?
	stop_all
	if [ $status = 0 ]; then
		printf 'ok    %s  %d.%d s\n' "$name" $(((${EPOCHREALTIME/./} - begin) / 1000000)) \
			$(((${EPOCHREALTIME/./} - begin) / 100000 % 10))
		passed=$((passed + 1))
	else
		echo "FAIL  $name: status $status; they said:"
		for file in "$output"/*; do
			[ ! -f "$file" ] || { echo "--- ${file##*/} ---"; tail -n 40 "$file"; }
		done
		failed=$((failed + 1))
	fi
	rm -rf "${output:?}"/*
}

tell_result() {
	echo "# passed=$passed failed=$failed skipped=$skipped"
	exit $((failed > 0))
}
