# SPDX-License-Identifier: BSD-2-Clause
"""A link with faults, and the proof that our adapter counted what was on it.

The guest's kernel makes the faults (netem), in both directions, so that a record of our end of the
wire has exactly what we sent and what we received. `Account` reads that record as an RC responder
would, knowing nothing of our adapter, and reports how many packets came ahead of their turn, again,
or broken."""

import json
import pathlib
import re
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'clients'))
from support_capture import ETHERNET, ICRC, UDP, Recorder, icrc, ip_length, without_padding

import guest
import sides

PSN_COUNT = 1 << 24
READ_REQUEST = 12
GROUP_BIT = 1                   # of the first byte of a link address
RESPONSES = range(13, 19)
# refused for that, before the ICRC is checked
BEFORE_ICRC = ('too_short', 'transport_version', 'unknown_opcode', 'length')

BEGIN = '''ip link set ifb0 up && tc qdisc add dev eth0 root netem {faults} limit 100000 &&
tc qdisc add dev ifb0 root netem {faults} limit 100000 && tc qdisc add dev eth0 ingress &&
tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0'''
END = 'tc qdisc del dev eth0 root; tc qdisc del dev eth0 ingress; tc qdisc del dev ifb0 root'


class FaultyLink:
    """In this context, the link has faults and is recorded."""

    def __init__(self, machine, faults):
        self.machine, self.faults = machine, faults

    def __enter__(self):
        said = self.machine.run(BEGIN.format(faults=self.faults).replace('\n', ' '))
        if said.status:
            raise guest.Trouble(f'no faults: {said.output()}')
        self.recorder = Recorder(sides.TAP)
        return self

    def __exit__(self, *_):
        self.lost = self.recorder.stop()
        self.machine.run(END)

    def packets(self):
        return self.recorder.packets


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def reaches_us(packet, our_link):
    """Whether the kernel gives the packet to a socket: it is sent to our link or to a group of
    links (which the kernel does not compare with the IP address), and both checksums are right, or
    there is none."""
    if packet[:6] != our_link and not packet[0] & GROUP_BIT:
        return False
    ip, udp = ETHERNET, ETHERNET + ip_length(packet)
    is_ipv6 = packet[ip] >> 4 == 6
    if len(packet) < udp + UDP:
        return False
    length = struct.unpack('>H', packet[udp + 4:udp + 6])[0]
    if not is_ipv6 and checksum(packet[ip:udp]) != 0xffff or not UDP <= length <= len(packet) - udp:
        return False
    if packet[udp + 6:udp + 8] == b'\0\0':
        return True
    addresses = packet[ip + 8:ip + 40] if is_ipv6 else packet[ip + 12:ip + 20]
    return checksum(addresses + struct.pack('>HH', 17, length) + packet[udp:udp + length]) == 0xffff


class Account:
    """The contents of a record of our end, under the names of our counters. It has one connection,
    whose requests find a receive."""

    def __init__(self, packets, our_link, mtu):
        self.mtu = mtu
        self.counts = dict.fromkeys(('tx_packets', 'rx_packets', 'broken', 'out_of_sequence', 'duplicate_request'), 0)
        arrived = []
        for packet in map(without_padding, packets):
            if packet[6:12] == our_link:
                self.counts['tx_packets'] += 1
            elif reaches_us(packet, our_link):
                self.counts['rx_packets'] += 1
                if icrc(packet) == packet[-ICRC:]:
                    arrived.append(packet[ETHERNET + ip_length(packet) + UDP:])
                else:
                    self.counts['broken'] += 1
        self.follow([packet for packet in arrived if packet[0] not in RESPONSES])

    def follow(self, requests):
        """The first request may be lost: the lowest PSN is the one that was expected then."""
        psns = [int.from_bytes(packet[9:12], 'big') for packet in requests]
        expected = min(psns, key=lambda psn: (psn - psns[0] + PSN_COUNT // 2) % PSN_COUNT, default=0)
        for packet, psn in zip(requests, psns):
            distance = (psn - expected + PSN_COUNT // 2) % PSN_COUNT - PSN_COUNT // 2
            if distance > 0:
                self.counts['out_of_sequence'] += 1
            elif distance < 0:
                self.counts['duplicate_request'] += 1
            else:
                expected = (expected + self.psns_of(packet)) % PSN_COUNT

    def psns_of(self, packet):
        """A READ takes one PSN for each packet of its answer."""
        if packet[0] != READ_REQUEST:
            return 1
        return max(1, -(-int.from_bytes(packet[24:28], 'big') // self.mtu))

    def why_not(self, counters):
        """The differences from the adapter's counters, or ''."""
        counted = dict(counters, broken=counters.get('rx_icrc_encapsulated', 0) + sum(
            counters.get(f'dropped {reason}', 0) for reason in BEFORE_ICRC))
        return '\n'.join(f'{name}: {counted.get(name, 0)} counted, {count} in the record'
                         for name, count in self.counts.items() if counted.get(name, 0) != count)


def read_counters(log):
    """The counters from the lines that an adapter logs when it is closed."""
    return {name: int(count) for name, count in
            re.findall(rf'vb_{sides.TAP}: ((?:dropped )?\w+) (\d+) pid=', log)}


def our_link_address():
    shown = guest.run('ip', '-json', 'link', 'show', sides.TAP)
    return bytes.fromhex(json.loads(shown)[0]['address'].replace(':', ''))
