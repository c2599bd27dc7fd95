# SPDX-License-Identifier: BSD-2-Clause
"""The two machines of the matrix: how programs are started on each, and how to know that a server
is ready. On ours they go through `verbatim run`; in the guest they use the kernel's device."""

import dataclasses
import ipaddress
import itertools
import json
import os
import pathlib
import shlex
import subprocess
import time

import cases
import guest

OWN_PROGRAMS = {name: guest.BUILD / 'tests/interop' / name for name in ('exchange', 'mishap', 'window')}
TAP = 'tap0'
OURS, PEERS = ('10.77.0.1', 'fd77::1'), ('10.77.0.2', 'fd77::2')
CASE_SECONDS = 300
MOURNING_SECONDS = 5    # the time that a server has to end after its client failed


def link_address(group):
    """The link address of an IP multicast group, as /proc/net/dev_mcast writes it."""
    packed = ipaddress.ip_address(group).packed
    if len(packed) == 4:
        return '01005e' + bytes([packed[1] & 0x7f, *packed[2:]]).hex()
    return '3333' + packed[-4:].hex()


@dataclasses.dataclass
class Setting:
    """The arguments of programs besides their case."""
    family: str
    server: 'Side'
    client: 'Side'
    port: int


class Side:
    def __init__(self, name, addresses, device, gids):
        self.name = name
        self.addresses = addresses
        self.device = device
        self.gids = gids        # address family: index

    def address(self, family):
        return self.addresses[family == cases.IPV6]

    def serve(self, words, setting, spot, group):
        """Starts a server; returns when it is ready or has ended."""
        job = self.start(words, spot)
        if group:
            while not job.has_ended() and not self.has_joined(group):
                time.sleep(0.05)
        else:
            spot.await_listener(setting.port, job.has_ended)
        return job

    def words(self, template, setting):
        return template.format(device=self.device, gid=self.gids[setting.family], port=setting.port,
                               host=setting.server.addresses[0], server=setting.server.address(setting.family),
                               client=setting.client.address(setting.family), **OWN_PROGRAMS)


class OurJob:
    def __init__(self, words, output, spot):
        self.output_path = output
        environment = dict(os.environ, VERBATIM_DEVICES=TAP, VERBATIM_LOG='debug', VERBATIM_LOG_FILE=f'{output}.log',
                           **spot.settings())
        self.process = subprocess.Popen(
            ['timeout', str(CASE_SECONDS), guest.BUILD / 'verbatim', 'run', *shlex.split(words)], env=environment,
            stdin=subprocess.DEVNULL, stdout=open(output, 'wb'), stderr=subprocess.STDOUT)

    def has_ended(self):
        return self.process.poll() is not None

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
        """The adapter's log, including its counters."""
        path = pathlib.Path(f'{self.output_path}.log')
        return path.read_text(errors='replace') if path.exists() else ''


class Ours(Side):
    def __init__(self, folder):
        self.folder = folder
        self.job_numbers = itertools.count(1)
        super().__init__('ours', OURS, f'vb_{TAP}', self.find_gids())

    def find_gids(self):
        said = guest.run(guest.BUILD / 'verbatim', 'devices', '--json', '--devices', TAP)
        found = {gid['gid']: gid['index'] for gid in json.loads(said)['devices'][0]['gids']}
        return {cases.IPV4: found[f'::ffff:{OURS[0]}'], cases.IPV6: found[OURS[1]]}

    def start(self, words, spot):
        return OurJob(words, self.folder / f'ours{next(self.job_numbers)}', spot)

    def has_joined(self, group):
        return link_address(group) in pathlib.Path('/proc/net/dev_mcast').read_text()


class PeerJob:
    def __init__(self, job, machine):
        self.job, self.machine = job, machine

    def has_ended(self):
        return self.job.ended.is_set()

    def wait(self):
        if not self.job.ended.wait(CASE_SECONDS + 30):
            raise guest.Trouble('the guest does not answer:\n' + self.machine.console())
        return self.job.status

    def end(self):
        if not self.job.ended.wait(MOURNING_SECONDS):
            self.machine.end_job(self.job)

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

    def start(self, words, spot):
        return PeerJob(self.machine.start(f'{spot.settings_in_guest()} {words}', CASE_SECONDS), self.machine)

    def has_joined(self, group):
        return self.machine.run(f'grep {link_address(group)} /proc/net/dev_mcast').status == 0
