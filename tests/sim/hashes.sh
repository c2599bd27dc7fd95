#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A change that shall not change behaviour changes no world: what the first 1,000 seeds did when it was last meant to
# change is in tests/sim/hashes.
#
#	tests/sim/hashes.sh --write       after a change that is meant: say in the commit which rule changed

set -u
cd "$(dirname "$0")/../.." || exit
expected=tests/sim/hashes
count=1000

print_hashes() {
	build/verbatim sim --from 1 --seeds $count --hashes | grep '^seed ' | sort -t ' ' -k 2n
}

if [ "${1:-}" = --write ]; then
	print_hashes >$expected
	exit
fi
if print_hashes | diff $expected -; then
	echo "ok  $count worlds are as they were"
	echo "# passed=1 failed=0 skipped=0"
else
	echo "FAIL  worlds are not as they were: seed, packets, end and hash, before (<) and now (>)"
	echo "# passed=0 failed=1 skipped=0"
	exit 1
fi
