#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# libibverbs.so.1 exports what the installed one does: the same names at the same versions with the
# same defaults and types, and at a version of their own the functions for our librdmacm, nothing more; and
# whatever installed programs and libraries import from libibverbs is there.

set -eu
ours=$VB_BUILD_RELEASE/lib/libibverbs.so.1
libraries=/usr/lib/x86_64-linux-gnu
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
passed=0 failed=0 skipped=0

exports() {
	nm -D --with-symbol-versions --defined-only "$1" | awk '{ print $2, $3 }' | sort
}

imports() {
	nm -D --with-symbol-versions -u "$1" | awk '$2 ~ /@IBVERBS_/ { print $2 }' | sort
}

verdict() {	# <status> <what>
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL  $2"
	fi
}

exports "$ours" >"$directory/all"
grep -v 'VERBATIM_1$' "$directory/all" >"$directory/ours"
exports $libraries/libibverbs.so.1 >"$directory/theirs"
status=0
diff "$directory/theirs" "$directory/ours" || status=1
verdict $status "the exports differ from those of the installed library"

# Each line is one that another library of ours, perhaps of another build, relies upon.
cat >"$directory/own" <<'END'
A VERBATIM_1
T vb_abi_heap_alloc@@VERBATIM_1
T vb_abi_heap_free@@VERBATIM_1
T vb_abi_log_line@@VERBATIM_1
T vb_abi_qp1_attach@@VERBATIM_1
T vb_abi_qp1_detach@@VERBATIM_1
T vb_abi_qp1_kick@@VERBATIM_1
T vb_abi_qp1_listen@@VERBATIM_1
T vb_abi_qp1_unlisten@@VERBATIM_1
T vb_abi_qp1_wait@@VERBATIM_1
END
status=0
grep 'VERBATIM_1$' "$directory/all" | diff "$directory/own" - || status=1
verdict $status "the exports for our librdmacm are not those of src/host/qp1/qp1_user.h"

readelf -d "$ours" >"$directory/dynamic"
for what in 'soname: \[libibverbs.so.1\]' NODELETE SYMBOLIC NOW; do
	status=0
	grep -q "$what" "$directory/dynamic" || status=1
	verdict $status "the dynamic section lacks $what"
done

# As importers write them: one @, whether it is the default version or not.
sed 's/^. //; s/@@/@/' "$directory/ours" | sort >"$directory/names"
for file in $libraries/libmlx5.so.1 $libraries/libefa.so.1 $libraries/librdmacm.so.1 \
	$libraries/libibverbs/*.so /usr/bin/ib_* /usr/bin/raw_ethernet_* /usr/bin/ibv_* \
	/usr/lib/python3/dist-packages/pyverbs/*.so; do
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
