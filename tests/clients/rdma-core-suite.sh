#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# rdma-core's own test suite, as the distribution ships it, on our loopback device, over packets and
# over shared-memory links. No test may fail, and at least as many must pass as passed when this was
# written: raise the number when the adapter gains a feature. Of the 171 tests that are not for
# other hardware, 11 are of raw packets, flows and RSS, and 11 cannot pass on any device here. Three
# want huge pages: root reserves them, if there are none, and gives them back.

set -u

pages=/proc/sys/vm/nr_hugepages
if [ -z "${VB_HUGE_PAGES:-}" ]; then
	VB_HUGE_PAGES=$(cat $pages 2>/dev/null || echo 0)
	if [ "$VB_HUGE_PAGES" = 0 ] && echo 16 2>/dev/null >$pages; then
		VB_HUGE_PAGES=$(cat $pages)
		export VB_HUGE_PAGES
		trap 'echo 0 >$pages' EXIT
		trap 'exit 1' INT TERM HUP
		"$0"
		exit
	fi
	export VB_HUGE_PAGES
fi
# A separate network, where this user may make one: whatever else runs on this machine shares no
# port with it.
if [ -z "${VB_IN_NAMESPACE:-}" ] && unshare -rn true 2>/dev/null; then
	VB_IN_NAMESPACE=1 exec unshare -rn "$0"
fi
[ -z "${VB_IN_NAMESPACE:-}" ] || ip link set lo up

least=146
[ "$VB_HUGE_PAGES" -ge 16 ] && least=149
suite=/usr/share/doc/rdma-core/tests
if [ ! -d $suite ] || ! /usr/bin/python3 -c 'import pyverbs' 2>/dev/null; then
	echo "rdma-core's suite or pyverbs is not installed"
	exit 77
fi
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
cp -r $suite/. "$directory"
gunzip -f "$directory"/*.gz
cd "$directory" || exit 1

# run_suite <path>: with peers reached over that path.
run_suite() {
	VERBATIM_DEVICES=lo VERBATIM_PATH=$1 timeout 300 "$VB_BUILD_RELEASE/verbatim" run /usr/bin/python3 run_tests.py \
		--dev vb_lo --port 1 --gid 1 -v >said 2>&1
	passed=$(awk '/\(tests\./ { ours = !/tests\.test_(mlx5|efa)/ } /(^| )ok$/ && ours { n++ } END { print n + 0 }' said)
	if ! tail -n 1 said | grep -q '^OK' || [ "$passed" -lt $least ]; then
		echo "path $1: $passed passed, $least must; it said:"
		grep -E '\.\.\. (FAIL|ERROR)' said
		tail -n 30 said
		exit 1
	fi
	echo "path $1: $passed tests of rdma-core's suite pass"
}

run_suite wire
run_suite auto
echo "the others, and those for other hardware, were skipped because:"
sed -n "s/.*\.\.\. skipped ['\"]\(.*\)['\"]\$/\1/p" said | sort | uniq -c | sort -rn
