#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# `make demo`, in its short form: every row has a number for each place, and it ends well. It runs
# as the user who runs the tests; as an ordinary user, if that user is root; and where no namespace
# may be made. Where programs fail, it must report that and fail.

set -u
cd "$(dirname "$0")/../.." || exit
for program in ib_write_lat sockperf ip unshare; do
	command -v $program >/dev/null || exit 77
done
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'rm -r "$folder"' EXIT
rows=11
passed=0 failed=0 skipped=0

# Programs of this name fail, for a caller that looks into that folder first.
break_programs() {
	mkdir "$1"
	for program in "${@:2}"; do
		printf '#!/bin/sh\necho it is broken\nexit 1\n' >"$1/$program"
		chmod 755 "$1/$program"
	done
}

# The client of this program misreads its clock the first two times, for a caller that looks into
# that folder first.
misread_clock() {
	cat >"$1/$2" <<END
#!/bin/sh
case \$* in
*127.0.0.1)
	echo try >>"$1/tries"
	if [ "\$(wc -l <"$1/tries")" -le 2 ]; then
		"$(command -v "$2")" "\$@" >/dev/null
		echo 'Correlation coefficient r^2: 0.02 < 0.9'
		echo ' 8       200          inf            inf          inf      	       inf'
		exit 0
	fi
	;;
esac
exec "$(command -v "$2")" "\$@"
END
	chmod 755 "$1/$2"
}

# expect <name> <exit status> <numbers in a row> <command>...
expect() {
	local name=$1 status=$2 number
	number=$(printf '( +[0-9]+\.[0-9] (us  |Gb\/s)){%d}' "$3")
	"${@:4}" >"$folder/output" 2>&1
	local got=$? count
	[ "$3" -gt 0 ] || number=' +did not run'
	local right="^  (ib_[a-z_]+|TCP)( -e)? +[a-zA-Z ,]+[a-z]$number\$"
	count=$(grep -cE "$right" "$folder/output")
	if [ $got -eq "$status" ] && [ "$count" -eq $rows ]; then
		echo "ok  $name"
		((passed++))
	else
		echo "FAIL  $name: exit status $got, $count of $rows rows as they should be"
		# The wrong rows and the end come first: a reader needs these, and a report may be
		# cut off.
		grep -E '^  (ib_|TCP)' "$folder/output" | grep -vE "$right"
		sed -n '/^What did not run said/,$p' "$folder/output"
		echo "All that it printed:"
		cat "$folder/output"
		((failed++))
	fi
}

skip() {
	echo "skip  $*"
	((skipped++))
}

break_programs "$folder/no-namespaces" unshare
misread_clock "$folder/no-namespaces" ib_send_lat
break_programs "$folder/nothing-works" unshare sockperf ib_{write,send,read}_{lat,bw}
lo_is_up='ip link set lo up && exec "$@"'
can_unshare() {
	unshare -rn true 2>/dev/null || { [ "$(id -u)" -eq 0 ] && unshare -n true 2>/dev/null; }
}

if can_unshare; then
	expect "as this user, on one host and over a cable" 0 2 scripts/demo --short
	expect "without the right to make namespaces, on one host, with a clock that is hard to read" 0 1 \
		unshare -rn sh -c "$lo_is_up" sh env PATH="$folder/no-namespaces:$PATH" scripts/demo --short
	expect "programs that fail are told of" 1 0 \
		unshare -rn sh -c "$lo_is_up" sh env PATH="$folder/nothing-works:$PATH" scripts/demo --short
else
	skip "this user may make no namespaces"
fi
as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent"
if [ "$(id -u)" -ne 0 ]; then
	skip "only root can become an ordinary user, and this is one"
elif ! $as_nobody test -x "$PWD/build/verbatim" || ! $as_nobody unshare -rn true 2>/dev/null; then
	skip "an ordinary user cannot reach this folder, or may make no namespaces"
else
	expect "as an ordinary user, on one host and over a cable" 0 2 $as_nobody scripts/demo --short
fi
echo "# passed=$passed failed=$failed skipped=$skipped"
exit $((failed > 0))
