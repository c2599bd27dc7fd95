# SPDX-License-Identifier: BSD-2-Clause
"""A machine with the kernel's own RDMA as a peer: a Debian kernel in QEMU, by software emulation,
with this machine's file system mounted read-only, so that every program that is installed here is
also there.

`Image` makes the initial file system from a kernel package that is unpacked and never installed.
`Guest` boots it once; commands and the reports of their ends go over a serial line, their output
goes to files in a shared folder. The guest ends with the QEMU process."""

import fcntl
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get('VB_BUILD_RELEASE', ROOT / 'build'))
AGENT = BUILD / 'tests/interop/agent'
BOOT_SECONDS = 180
# rdma_rxe asks the crypto layer for its CRC by name: no dependency between modules shows this.
MODULES = ('crc32_generic', 'virtio_pci', 'virtio_net', '9pnet_virtio', '9p', 'overlay', 'rdma_rxe', 'ib_uverbs',
           'rdma_ucm', 'ib_umad', 'veth', 'sch_netem', 'ifb', 'act_mirred', 'cls_matchall', 'sch_ingress')

# Loads the modules, mounts something writable over the foreign file system and goes there. The
# kernel passes on `agent` and `arguments` from its command line.
INIT = '''#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
for module in $(cat /modules/order); do insmod /modules/$module; done
mkdir -p /host /changes /root
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host
mount -t tmpfs none /changes
mkdir /changes/upper /changes/work
mount -t overlay -o lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work none /root
mount --move /dev /root/dev
mount -t proc none /root/proc
mount -t sysfs none /root/sys
for folder in dev/shm run; do mkdir -p /root/$folder; mount -t tmpfs none /root/$folder; done
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none shared /root/mnt
exec switch_root /root "$agent"
'''


class Trouble(Exception):
    """The guest cannot be made or does not answer."""


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if result.returncode:
        raise Trouble(f'{shlex.join(map(str, command))}: {result.stderr.strip() or result.returncode}')
    return result.stdout


class Image:
    """vmlinuz and initrd.gz in a folder, made again when the kernel package there is newer."""

    def __init__(self, folder):
        self.folder = folder
        self.kernel = folder / 'vmlinuz'
        self.initrd = folder / 'initrd.gz'

    def make(self):
        """Of several runs that begin together, one makes the image; the others wait."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / 'making', 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.make_if_old()

    def make_if_old(self):
        packages = sorted(self.folder.glob('linux-image-*.deb'), key=lambda path: path.stat().st_mtime)
        if not packages:
            raise Trouble(f'there is no linux-image package in {self.folder}')
        made_from = pathlib.Path(__file__).stat().st_mtime, packages[-1].stat().st_mtime
        if self.initrd.exists() and self.initrd.stat().st_mtime > max(made_from):
            return
        self.unpack(packages[-1])
        self.pack()

    def unpack(self, package):
        kernel, root = self.folder / 'kernel', self.folder / 'root'
        for folder in (kernel, root):
            shutil.rmtree(folder, ignore_errors=True)
        run('dpkg', '-x', package, kernel)
        version = next((kernel / 'lib/modules').iterdir()).name
        shutil.copy(kernel / f'boot/vmlinuz-{version}', self.kernel)
        for folder in ('bin', 'proc', 'sys', 'dev', 'modules'):
            (root / folder).mkdir(parents=True)
        shutil.copy(shutil.which('busybox') or '/bin/busybox', root / 'bin/busybox')
        run('/sbin/depmod', '-b', kernel, version)
        self.copy_modules(kernel, version, root / 'modules')
        (root / 'init').write_text(INIT)
        (root / 'init').chmod(0o755)
        shutil.rmtree(kernel)

    def copy_modules(self, kernel, version, folder):
        order = []
        for module in MODULES:
            needed = run('/sbin/modprobe', '-d', kernel, '-S', version, '--show-depends', module)
            for line in needed.splitlines():
                word = line.split()
                if word[0] == 'insmod' and word[1] not in order:
                    order.append(word[1])
        for path in order:
            shutil.copy(path, folder)
        (folder / 'order').write_text('\n'.join(pathlib.Path(path).name for path in order))

    def pack(self):
        new = self.initrd.with_suffix('.new')
        with open(new, 'wb') as out:
            subprocess.run('find . | cpio -o -H newc --quiet | gzip -1', shell=True, stdout=out, check=True,
                           cwd=self.folder / 'root')
        new.rename(self.initrd)
        shutil.rmtree(self.folder / 'root')


class Job:
    """A command in the guest. Its output is in the shared folder."""

    def __init__(self, number, path):
        self.number = number
        self.path = path
        self.status = None
        self.ended = threading.Event()

    def output(self):
        return self.path.read_text(errors='replace') if self.path.exists() else ''


class Guest:
    """`tap` is an interface of this network namespace; `setup` is a shell command that runs
    first."""

    def __init__(self, image, folder, tap, setup):
        self.folder = folder
        self.jobs = []
        self.starting = threading.Lock()
        self.is_up = threading.Event()
        (folder / 'setup').write_text(setup)
        self.qemu = self.command(image, tap, folder / 'line')
        self.boot()

    def boot(self):
        line = self.folder / 'line'
        line.unlink(missing_ok=True)
        self.process = subprocess.Popen(self.qemu, stdin=subprocess.DEVNULL,
                                        stdout=open(self.folder / 'qemu', 'wb'), stderr=subprocess.STDOUT)
        self.line = self.connect(line)
        threading.Thread(target=self.listen, daemon=True).start()

    def command(self, image, tap, line):
        return ['qemu-system-x86_64', '-machine', 'q35,accel=tcg', '-cpu', 'max', '-smp', '2', '-m', '1024',
                '-nographic', '-no-reboot', '-nodefaults', '-kernel', image.kernel, '-initrd', image.initrd,
                '-append', f'console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable agent={AGENT}',
                '-serial', f'file:{self.folder}/console', '-serial', f'unix:{line},server=on,wait=off',
                '-netdev', f'tap,id=net,ifname={tap},script=no,downscript=no', '-device', 'virtio-net-pci,netdev=net',
                '-fsdev', 'local,id=host,path=/,security_model=none,readonly=on,multidevs=remap',
                '-device', 'virtio-9p-pci,fsdev=host,mount_tag=host',
                '-fsdev', f'local,id=shared,path={self.folder},security_model=none',
                '-device', 'virtio-9p-pci,fsdev=shared,mount_tag=shared']

    def connect(self, line):
        connection = socket.socket(socket.AF_UNIX)
        for _ in range(200):
            if self.process.poll() is not None:
                break
            try:
                connection.connect(str(line))
                return connection
            except OSError:
                time.sleep(0.05)
        raise Trouble('QEMU did not start: ' + (self.folder / 'qemu').read_text())

    def listen(self):
        """Reads the agent's reports: "up", "ended <job> <status>"."""
        for text in self.line.makefile(errors='replace'):
            word = text.split()
            if word == ['up']:
                self.is_up.set()
            elif len(word) == 3 and word[0] == 'ended' and int(word[1]) < len(self.jobs):
                job = self.jobs[int(word[1])]
                job.status = int(word[2])
                job.ended.set()

    def wait_until_up(self):
        """The emulator has been seen to stop before the kernel's first message: then it gets a
        second chance."""
        if self.is_up.wait(BOOT_SECONDS / 2):
            return
        self.end()
        self.boot()
        if not self.is_up.wait(BOOT_SECONDS / 2):
            raise Trouble('the guest did not come up:\n' + self.console())

    def console(self):
        return '\n'.join((self.folder / 'console').read_text(errors='replace').splitlines()[-30:])

    def start(self, command, seconds=60):
        with self.starting:
            job = Job(len(self.jobs), self.folder / f'job{len(self.jobs)}')
            self.jobs.append(job)
            self.line.sendall(f'run {job.number} {seconds} {command}\n'.encode())
        return job

    def end_job(self, job):
        with self.starting:
            self.line.sendall(f'end {job.number}\n'.encode())

    def run(self, command, seconds=60):
        job = self.start(command, seconds)
        if not job.ended.wait(seconds + 30):
            raise Trouble(f'no answer from the guest to {command}\n' + self.console())
        return job

    def end(self):
        self.process.kill()
        self.process.wait()
