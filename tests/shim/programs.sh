#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Unmodified programs look for the devices through `verbatim run`: shells, Python, ls, find, cat, and those of the
# distribution that read sysfs themselves. What they find is what libibverbs and `verbatim devices` say.

set -u

# A network of its own, with two devices, where this user may make one.
if [ -z "${VB_IN_NAMESPACE:-}" ]; then
	if ! unshare -rn true 2>/dev/null; then
		echo "skipped: this user may not make a network namespace"
		exit 77
	fi
	VB_IN_NAMESPACE=1 exec unshare -rn "$0"
fi
ip link set lo up
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
ip address add 10.9.8.7/24 dev v0

verbatim=$VB_BUILD_RELEASE/verbatim
passed=0 failed=0 skipped=0
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
export VERBATIM_DEVICES=v0,lo
class=/sys/class/infiniband

result() {
	if [ "$1" -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL  $2"
		echo "    wanted: $3"
		echo "    it said: $4"
	fi
}

# says <title> <wanted> <command>...: exactly these words, and exit status 0.
says() {
	title=$1 wanted=$2
	shift 2
	if ! command -v "$1" >/dev/null; then
		skipped=$((skipped + 1))
		echo "skip  $1 is not installed"
		return
	fi
	said=$(timeout 60 "$verbatim" run "$@" 2>&1)
	[ $? -eq 0 ] && [ "$said" = "$wanted" ]
	result $? "$title" "$wanted" "$said"
}

# --- shells, ls, find, cat, Python ---

says 'ls lists the devices' 'vb_lo
vb_v0' ls $class
says 'ls -l shows links' 'lrwxrwxrwx vb_v0 -> ../../devices/virtual/verbatim/vb_v0/infiniband/vb_v0' \
	bash -c "ls -l $class | awk '/vb_v0/ { print \$1, \$9, \$10, \$11 }'"
says 'ls -lR complains of nothing' '' sh -c "ls -lR $class/ /dev/infiniband/ /sys/class/infiniband_verbs/ \
	/sys/devices/virtual/verbatim >/dev/null"
says 'cat' '4: ACTIVE' cat $class/vb_v0/ports/1/state
says 'cat reads what was opened by the shell' '4: ACTIVE' sh -c "cat < $class/vb_v0/ports/1/state"
says 'bash tests files' 'yes' bash -c "[ -e $class/vb_v0 ] && [ -L $class/vb_v0 ] && [ -d $class/vb_v0/ports ] &&
	[ -r $class/vb_v0/fw_ver ] && [ ! -w $class/vb_v0/fw_ver ] && [ ! -e $class/vb_x ] &&
	[ -c /dev/infiniband/rdma_cm ] && [ -w /dev/infiniband/rdma_cm ] && echo yes"
says 'bash expands patterns' "$class/vb_v0/ports/1/gids/0 $class/vb_v0/ports/1/gids/1" \
	bash -c "echo $class/vb_v?/ports/*/gids/[01]"
says 'dash expands patterns' "$class/vb_lo $class/vb_v0" dash -c "echo $class/*"
says 'a shell may go there' '/sys/class/infiniband
vb_lo
vb_v0
1: CA
/sys/class' bash -c "cd $class; pwd; ls; cat vb_v0/node_type; cd ..; pwd"
says 'find finds files' "$class/vb_v0/ports/1/lid
$class/vb_v0/ports/1/lid_mask_count" sh -c "find $class/vb_v0/ -name 'lid*' -type f | sort"
says 'find compares names, kinds and sizes' "/dev/infiniband/rdma_cm" find /dev/infiniband -type c -name rdma_cm -size 0
says 'grep -r' "$class/vb_v0/ports/1/pkeys/0:0xffff" grep -r . $class/vb_v0/ports/1/pkeys
says 'cp copies the contents and nothing else' '1.0.0
6' sh -c "cp $class/vb_v0/fw_ver $directory/copy && cat $directory/copy && stat -c %s $directory/copy"
says 'readlink -f' /sys/devices/virtual/verbatim/vb_v0 readlink -f $class/vb_v0/device
says 'stat' 'character special file' stat -c %F /dev/infiniband/rdma_cm
says 'the device leads to its interface' '10.9.8.7/24' \
	sh -c "ip -o -4 address show dev \$(ls $class/vb_v0/device/net) | awk '{ print \$4 }'"
says 'python3 lists, tests, opens and matches' "['vb_lo', 'vb_v0'] True 1.0.0 2 ['net'] v0" python3 -c "
import glob, os, pathlib
print(sorted(os.listdir('$class')), os.path.exists('$class/vb_v0/device/net/'),
      open('$class/vb_v0/fw_ver').read().strip(), len(glob.glob('$class/*/ports/*/state')),
      [e.name for e in os.scandir('$class/vb_v0/device') if e.name == 'net'],
      pathlib.Path('$class/vb_v0/device/net').iterdir().__next__().name)"
says 'children of children' 'vb_v0' python3 -c "
import subprocess
print(subprocess.check_output(['sh', '-c', 'env ls $class | grep v0'], text=True).strip())"

# --- the same facts as elsewhere ---

# What the tree says of each device and its GIDs, in the words of `verbatim devices --json`.
says 'the tree says what verbatim devices says' "$("$verbatim" devices --json | python3 -c "
import ipaddress, json, sys
for device in json.load(sys.stdin)['devices']:
    print(device['name'], device['guid'], device['interface'])
    for gid in device['gids']:
        print(gid['index'], ipaddress.ip_address(gid['gid']).exploded, gid['type'], device['interface'])")" python3 -c "
import ipaddress, os
def read(*path):
    return open(os.path.join('$class', *path)).read().strip()
for device in ('vb_v0', 'vb_lo'):
    print(device, read(device, 'node_guid').replace(':', ''), os.listdir('$class/' + device + '/device/net')[0])
    for i in range(128):
        gid = ipaddress.ip_address(read(device, 'ports/1/gids', str(i)))
        if int(gid):
            print(i, gid.exploded, read(device, 'ports/1/gid_attrs/types', str(i)),
                  read(device, 'ports/1/gid_attrs/ndevs', str(i)))"

if command -v ibv_devinfo >/dev/null; then
	said=$("$verbatim" run ibv_devinfo -d vb_v0 | awk '
		$1 == "fw_ver:" || $1 == "node_guid:" || $1 == "sys_image_guid:" { print $2 }
		$1 == "state:" { print substr($3, 2, 1) ": " substr($2, 6) }
		$1 == "link_layer:" { print $2 }')
	says 'the tree says what libibverbs says' "$said" sh -c "cd $class/vb_v0;
		cat fw_ver node_guid sys_image_guid ports/1/state ports/1/link_layer"
	says 'so it does of the rate' "$("$verbatim" run ibv_devinfo -v -d vb_lo | awk '
		$1 == "active_width:" { width = $2 }
		$1 == "active_speed:" { print $2 " Gb/sec (" width " SDR)" }')" cat $class/vb_lo/ports/1/rate
	# struct ibv_device has the names of the node and of its sysfs folders at 88, 152 and 408.
	says 'libibverbs names files that exist' 'True True True' python3 -c "
import ctypes, os
verbs = ctypes.CDLL('libibverbs.so.1')
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
device = verbs.ibv_get_device_list(None)[0]
text = lambda offset: ctypes.string_at(device + offset).decode()
print(os.path.exists('/dev/infiniband/' + text(88)), open(text(152) + '/ibdev').read() == text(24) + '\\n',
      os.path.isdir(text(408)))"
else
	skipped=$((skipped + 1))
fi

# --- programs that read sysfs themselves ---

says 'ibstatus' "Infiniband device 'vb_v0' port 1 status:
	default gid:	 $("$verbatim" run cat $class/vb_v0/ports/1/gids/0)
	base lid:	 0x0
	sm lid:		 0x0
	state:		 4: ACTIVE
	phys state:	 5: LinkUp
	rate:		 10 Gb/sec (1X QDR)
	link_layer:	 Ethernet" ibstatus vb_v0:1
says 'ibstatus of all' "Infiniband device 'vb_lo' port 1 status:
Infiniband device 'vb_v0' port 1 status:" sh -c 'ibstatus | grep device'
says 'ibstat' 'vb_lo
vb_v0' sh -c 'ibstat -l | sort'

# --- the state of this moment ---

ip link set v1 down
for _ in $(seq 100); do
	ip link show dev v0 | grep -q LOWER_UP || break
	sleep 0.05
done
says 'a cable that is pulled' '1: DOWN' cat $class/vb_v0/ports/1/state
export VERBATIM_DEVICES=lo
says 'only the chosen devices' 'vb_lo' ls $class
export VERBATIM_DEVICES=none
says 'no device: empty folders' 'rdma_cm
abi_version' sh -c "ls $class; ls /dev/infiniband; ls /sys/class/infiniband_verbs"

# --- everything else ---

same() {
	title=$1
	shift
	wanted=$(LC_ALL=C "$@" 2>&1)
	wanted_status=$?
	said=$(LC_ALL=C "$verbatim" run "$@" 2>&1)
	[ $? -eq $wanted_status ] && [ "$said" = "$wanted" ]
	result $? "$title" "as without verbatim run" "$(diff <(echo "$wanted") <(echo "$said") | head -n 5)"
}

same 'ls -lR of other folders' ls -lR /sys/class/net /sys/devices/system/cpu /dev/disk /etc/alternatives
same 'find through other folders' find -L /sys/class/net/lo /usr/share/doc -maxdepth 3 -printf '%p %m %s %y %i\n'
same 'the folders above' ls /sys/class /sys/devices/virtual /dev
same 'what does not exist' cat /sys/class/infiniban /sys/class/infiniband_x /nothing
same 'a pipeline' sh -c 'cd /usr/share; pwd; tar -cf - doc/bash* | tar -tvf - | sort | md5sum'

if [ ! -e $class ]; then
	[ "$(ls /sys/class/infiniband 2>&1)" != "" ]
	result $? 'without verbatim run there is nothing' 'an error' 'nothing'
fi
LD_PRELOAD='' "$verbatim" run sh -c 'echo "$LD_PRELOAD"' | grep -qx libverbatim-preload.so
result $? 'an empty LD_PRELOAD' libverbatim-preload.so ''
LD_PRELOAD=libc.so.6 "$verbatim" run sh -c 'echo "$LD_PRELOAD"' | grep -qx libverbatim-preload.so:libc.so.6
result $? 'LD_PRELOAD keeps what is in it' libverbatim-preload.so:libc.so.6 ''

# --- other places ---

mkdir -p "$directory/with space/lib" "$directory/with:colon/lib"
for folder in "$directory/with space" "$directory/with:colon"; do
	cp "$verbatim" "$folder"
	for library in libibverbs.so.1 librdmacm.so.1 libverbatim-preload.so; do
		cp "$VB_BUILD_RELEASE/lib/$library" "$folder/lib"
	done
done
export VERBATIM_DEVICES=lo
said=$("$directory/with space/verbatim" run ls $class 2>&1)
[ "$said" = vb_lo ]
result $? 'a folder with a space in its name' vb_lo "$said"
said=$("$directory/with:colon/verbatim" run ls $class 2>&1)
[ $? -eq 1 ] && [[ $said == *"':' and ';' separate folders"* ]]
result $? 'a folder that the loader cannot be told of' 'an error' "$said"

echo "# passed=$passed failed=$failed skipped=$skipped"
[ $failed -eq 0 ]
