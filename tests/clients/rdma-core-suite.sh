#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# rdma-core's own test suite, as the distribution ships it, on our loopback device. No test may fail, and at least as many
# must pass as passed when this was written: raise the number with what the adapter learns.

set -u

# A network of its own, where this user may make one: whatever else runs on this machine shares no port with it.
if [ -z "${VB_IN_NAMESPACE:-}" ] && unshare -rn true 2>/dev/null; then
	VB_IN_NAMESPACE=1 exec unshare -rn "$0"
fi
[ -z "${VB_IN_NAMESPACE:-}" ] || ip link set lo up
least=123
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
VERBATIM_DEVICES=lo timeout 300 "$VB_BUILD_RELEASE/verbatim" run /usr/bin/python3 run_tests.py \
	--dev vb_lo --port 1 --gid 1 -v >said 2>&1
passed=$(grep -c '\.\.\. ok$' said)
if ! tail -n 1 said | grep -q '^OK' || [ "$passed" -lt $least ]; then
	echo "$passed passed, $least must; it said:"
	grep -E '\.\.\. (FAIL|ERROR)' said
	tail -n 30 said
	exit 1
fi
echo "$passed tests of rdma-core's suite pass"
