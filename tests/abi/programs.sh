#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Programs of the distribution start with our library, which they do not notice, and do what they do
# on a machine without devices.

set -eu
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
passed=0 failed=0 skipped=0
export LD_LIBRARY_PATH="$VB_BUILD_RELEASE/lib"
export VERBATIM_DEVICES=none # as on a machine without interfaces

# try <exit status> <words it says> <command>...
try() {
	wanted=$1 words=$2
	shift 2
	if ! command -v "$1" >/dev/null; then
		skipped=$((skipped + 1))
		echo "skip  $1 is not installed"
		return
	fi
	status=0
	timeout 60 "$@" >"$directory/said" 2>&1 || status=$?
	if [ $status -eq "$wanted" ] && grep -q -e "$words" "$directory/said"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL  $*: exit status $status, wanted $wanted and the words '$words'; it said:"
		cat "$directory/said"
	fi
}

# Is it really ours that the loader takes?
try 0 "$VB_BUILD_RELEASE/lib/libibverbs.so.1" ldd "$(command -v ibv_devices || echo /bin/true)"

try 0 'node GUID' ibv_devices
try 255 'No IB devices found' ibv_devinfo
try 1 'Version:' ib_write_bw --version
try 1 'Version:' ib_send_lat --version
try 1 'Usage:' ib_write_bw -h
try 1 'Did not detect devices' ib_write_bw
try 1 'No IB devices found' ibv_rc_pingpong
try 0 '^\[\]$' /usr/bin/python3 -c 'import pyverbs.device as d; print(d.get_device_list())'
try 0 '^2$' /usr/bin/python3 -c 'import pyverbs.fork as f; print(int(f.is_fork_initialized()))'
try 0 '^ok$' /usr/bin/python3 -c 'import pyverbs.qp, pyverbs.cq, pyverbs.mr, pyverbs.cmid; print("ok")'

echo "# passed=$passed failed=$failed skipped=$skipped"
[ $failed -eq 0 ]
