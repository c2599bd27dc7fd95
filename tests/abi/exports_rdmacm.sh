#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# librdmacm.so.1 exports what the installed one does: the same names at the same versions, nothing more; it is found beside our
# libibverbs, needs nothing else but the C library, and whatever installed programs import from librdmacm is there.

set -eu
ours=$VB_BUILD_RELEASE/lib/librdmacm.so.1
libraries=/usr/lib/x86_64-linux-gnu
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
passed=0 failed=0 skipped=0

exports() {
	nm -D --with-symbol-versions --defined-only "$1" | awk '{ print $2, $3 }' | sort
}

imports() {
	nm -D --with-symbol-versions -u "$1" | awk '$2 ~ /@RDMACM_/ { print $2 }' | sort
}

verdict() {	# <status> <what>
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL  $2"
	fi
}

exports "$ours" >"$directory/ours"
exports $libraries/librdmacm.so.1 >"$directory/theirs"
status=0
diff "$directory/theirs" "$directory/ours" || status=1
verdict $status "the exports differ from those of the installed library"

readelf -d "$ours" >"$directory/dynamic"
for what in 'soname: \[librdmacm.so.1\]' NODELETE SYMBOLIC NOW; do
	status=0
	grep -q "$what" "$directory/dynamic" || status=1
	verdict $status "the dynamic section lacks $what"
done
needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$directory/dynamic" | sort | tr '\n' ' ')
status=0
[ "$needed" = 'libc.so.6 libibverbs.so.1 ' ] || status=1
verdict $status "it needs $needed"

sed 's/^. //; s/@@/@/' "$directory/ours" | sort >"$directory/names"
for file in /usr/bin/rping /usr/bin/ucmatose /usr/bin/udaddy /usr/bin/mckey /usr/bin/cmtime \
	/usr/bin/rdma_server /usr/bin/rdma_xserver /usr/bin/rstream /usr/bin/ib_send_bw /usr/bin/qperf \
	/usr/bin/fio /usr/lib/python3/dist-packages/pyverbs/cmid*.so; do
	if [ ! -e "$file" ]; then
		skipped=$((skipped + 1))
		echo "skip  $file is not installed"
		continue
	fi
	imports "$file" >"$directory/imports"
	missing=$(comm -23 "$directory/imports" "$directory/names")
	status=0
	[ -z "$missing" ] || status=1
	verdict $status "$file imports what is not there: $missing"
done

echo "# passed=$passed failed=$failed skipped=$skipped"
[ $failed -eq 0 ]
