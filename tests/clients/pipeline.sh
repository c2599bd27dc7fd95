#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The commands of docs/CI.md, as they stand there: those of "Install", with another folder, and those
# of "The job", as a user without any rights in a network namespace that has loopback only.

set -eu
cd "$(dirname "$0")/../.."
for program in unshare setpriv ibv_rc_pingpong; do
	command -v $program >/dev/null || { echo "$program is not installed"; exit 77; }
done
[ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null || {
	echo "this needs root, to become a user without any rights"
	exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
chmod 755 "$folder"

# commands_of <heading>: the indented lines below it.
commands_of() {
	sed -n "/^## $1\$/,/^## /s/^    //p" docs/CI.md | sed "s,/opt/verbatim,$folder/verbatim,g"
}

{ echo set -eu; commands_of Install; } >"$folder/install"
{ echo set -eu; commands_of "The job"; echo echo the job is done; } >"$folder/job"
[ "$(wc -l <"$folder/install")" = 3 ] && [ "$(grep -c 'verbatim run' "$folder/job")" = 4 ]
sh "$folder/install"
mkdir -m 777 "$folder/work"
cd "$folder/work"
status=0
timeout 60 unshare -n sh -c 'ip link set lo up && exec "$@"' sh \
	setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all \
	env -i PATH=/usr/bin:/bin sh "$folder/job" >job.log 2>&1 || status=$?
[ $status = 0 ] && grep -qx 'the job is done' job.log && grep -q '1000 iters in' server.log client.log || {
	echo "the job ended with $status"
	tail -n 20 job.log server.log client.log
	exit 1
}
