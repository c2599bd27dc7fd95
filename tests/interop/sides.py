# SPDX-License-Identifier: BSD-2-Clause
"""The two machines of the matrix: how programs are started on each, and how to know that a server is ready. On ours
they go through `verbatim run`; in the guest they use the kernel's device."""

import ipaddress
import json
import os
import pathlib
import shlex
import subprocess
import time

import cases
import guest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get('VB_BUILD_RELEASE', ROOT / 'build'))
OWN_PROGRAMS = {name: BUILD / 'tests/interop' / name for name in ('exchange', 'mishap', 'window')}
TAP = 'tap0'
OURS, PEERS = ('10.77.0.1', 'fd77::1'), ('10.77.0.2', 'fd77::2')
CASE_SECONDS = 120
MOURNING_SECONDS = 5    # that a server has to end after its client failed


def link_address(group):
    """Of the Ethernet frames of an IP multicast group, as /proc/net/dev_mcast writes it."""
    packed = ipaddress.ip_address(group).packed
    if len(packed) == 4:
        return '01005e' + bytes([packed[1] & 0x7f, *packed[2:]]).hex()
    return '3333' + packed[-4:].hex()


class Side:
    def __init__(self, name, addresses, device, gids):
        self.name = name
        self.addresses = addresses
        self.device = device
        self.gids = gids        # address family: index

    def address(self, family):
        return self.addresses[family == cases.IPV6]

    def words(self, template, trial):
        return template.format(device=self.device, gid=self.gids[trial.family], port=trial.port,
                               host=trial.server.addresses[0], server=trial.server.address(trial.family),
                               client=trial.client.address(trial.family), **OWN_PROGRAMS)


class OurJob:
    def __init__(self, words, output):
        self.output_path = output
        environment = dict(os.environ, VERBATIM_DEVICES=TAP, VERBATIM_LOG='debug', VERBATIM_LOG_FILE=f'{output}.log')
        self.process = subprocess.Popen(
            ['timeout', str(CASE_SECONDS), BUILD / 'verbatim', 'run', *shlex.split(words)], env=environment,
            stdin=subprocess.DEVNULL, stdout=open(output, 'wb'), stderr=subprocess.STDOUT)

    def wait(self):
        return self.process.wait()

    def end(self):
        try:
            self.process.wait(MOURNING_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.terminate()

    def output(self):
        return self.output_path.read_text(errors='replace')

    def log(self):
        """What the adapter said, its counters included."""
        path = pathlib.Path(f'{self.output_path}.log')
        return path.read_text(errors='replace') if path.exists() else ''


class Ours(Side):
    def __init__(self, folder):
        self.folder = folder
        self.job_count = 0
        super().__init__('ours', OURS, f'vb_{TAP}', self.find_gids())

    def find_gids(self):
        said = guest.run(BUILD / 'verbatim', 'devices', '--json', '--devices', TAP)
        found = {gid['gid']: gid['index'] for gid in json.loads(said)['devices'][0]['gids']}
        return {cases.IPV4: found[f'::ffff:{OURS[0]}'], cases.IPV6: found[OURS[1]]}

    def start(self, words):
        self.job_count += 1
        return OurJob(words, self.folder / f'ours{self.job_count}')

    def serve(self, words, trial):
        job = self.start(words)
        is_ready = self.has_joined if trial.case.group else self.is_listening
        while job.process.poll() is None and not is_ready(trial):
            time.sleep(0.02)
        return job

    def has_joined(self, trial):
        return link_address(trial.case.group) in pathlib.Path('/proc/net/dev_mcast').read_text()

    def is_listening(self, trial):
        """On the TCP port, or by the connection manager: the name of the socket has the service."""
        if f'{trial.port:04x}/' in ''.join(
                line.partition('/listens/')[2] for line in pathlib.Path('/proc/net/unix').read_text().splitlines()):
            return True
        return any(line.split()[1].endswith(f':{trial.port:04X}') and line.split()[3] == '0A'
                   for table in ('/proc/net/tcp', '/proc/net/tcp6')
                   for line in pathlib.Path(table).read_text().splitlines()[1:])


class PeerJob:
    def __init__(self, job, machine, port=0):
        self.job, self.machine, self.port = job, machine, port

    def wait(self):
        if not self.job.ended.wait(CASE_SECONDS + 30):
            raise guest.Trouble('the guest does not answer')
        return self.job.status

    def end(self):
        """By the port in its command line, which the command that ends it does not have in the same way."""
        if not self.job.ended.wait(MOURNING_SECONDS) and self.port:
            self.machine.run(f"busybox pkill -f -- '[{str(self.port)[0]}]{str(self.port)[1:]}'")

    def output(self):
        return self.job.output()

    def log(self):
        return ''


class Peer(Side):
    def __init__(self, machine):
        self.machine = machine
        super().__init__('peer', PEERS, 'rxe0', self.find_gids())

    def find_gids(self):
        said = self.machine.run('for i in 0 1 2 3 4 5 6 7; do '
                                'echo $i $(cat /sys/class/infiniband/rxe0/ports/1/gids/$i); done').output()
        found = {gid: index for index, gid in (line.split() for line in said.splitlines())}
        return {cases.IPV4: found['0000:0000:0000:0000:0000:ffff:0a4d:0002'],
                cases.IPV6: found['fd77:0000:0000:0000:0000:0000:0000:0002']}

    def has_joined(self, trial):
        return self.machine.run(f'grep {link_address(trial.case.group)} /proc/net/dev_mcast').status == 0

    def start(self, words):
        return PeerJob(self.machine.start(words, seconds=CASE_SECONDS), self.machine)

    def serve(self, words, trial):
        if trial.case.group:
            job = self.start(words)
            while not job.job.ended.is_set() and not self.has_joined(trial):
                time.sleep(0.1)
            return job
        job = self.machine.start(words, trial.port, CASE_SECONDS)
        job.listening.wait(CASE_SECONDS)
        return PeerJob(job, self.machine, trial.port)
