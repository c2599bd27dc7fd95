#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The ping-pongs of examples/languages: each language with itself, and in a ring with the next one,
# by shared memory and by packets. A language whose compiler is not installed is skipped; `make
# clients` installs all of them.

set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
if [ -z "${VB_IN_NAMESPACE:-}" ]; then
	unshare -rn true 2>/dev/null || exit 77
	VB_IN_NAMESPACE=1 exec unshare -rn "$0"
fi
ip link set lo up
output=$(mktemp -d)
trap 'rm -r "$output"' EXIT
passed=0 failed=0 skipped=0 built=

for language in py cc rs go java; do
	"$here/examples/languages/build" $language >"$output/build" 2>&1
	case $? in
	0) built="$built $language" ;;
	77) echo "skip: $language: $(tail -n 1 "$output/build")"; skipped=$((skipped + 1)) ;;
	*) echo "FAIL: $language does not build:"; cat "$output/build"; failed=$((failed + 1)) ;;
	esac
done

# run_end <language> <path> <name of its output> [server]
run_end() (
	exec env VERBATIM_PATH=$2 timeout 60 "$VB_BUILD_RELEASE/verbatim" run "$here/build/examples/pingpong-$1" vb_lo \
		${4:+"$4"} >"$output/$3" 2>&1
)

# play <language of the server> <language of the client> <path>
play() {
	local status=0 server

	run_end "$1" "$3" server &
	server=$!
	run_end "$2" "$3" client 127.0.0.1 || { status=1; kill $server; }
	wait $server || status=1
	grep -qx '1000 round trips of 64 bytes, all right' "$output/server" || status=1
	grep -qx '1000 round trips of 64 bytes, all right' "$output/client" || status=1
	if [ $status = 0 ]; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "FAIL: $1 serves $2, path $3; they said:"
	cat "$output/server" "$output/client"
}

set -- $built
for path in auto wire; do
	for ((i = 1; i <= $#; i++)); do
		play "${!i}" "${!i}" $path
		next=$((i % $# + 1))
		[ $next = $i ] || play "${!i}" "${!next}" $path
	done
done
echo "# passed=$passed failed=$failed skipped=$skipped"
[ $failed = 0 ]
