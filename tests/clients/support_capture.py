# SPDX-License-Identifier: BSD-2-Clause
"""RoCEv2 packets captured on an interface, and their ICRC, computed in another way than by the
engine."""

import socket
import struct
import threading
import zlib

ETHERNET, UDP, BTH, ICRC = 14, 8, 12, 4
PORT = 4791
EVERY_PROTOCOL = 3


class Recorder:
    """All packets of our end of a wire, in both directions, until stopped."""

    def __init__(self, interface):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        self.socket.bind((interface, EVERY_PROTOCOL))
        self.socket.settimeout(0.2)
        self.is_stopping = False
        self.packets = []
        self.thread = threading.Thread(target=self.record)
        self.thread.start()

    def record(self):
        while True:
            try:
                packet = self.socket.recv(65536)
            except TimeoutError:
                if self.is_stopping:
                    return
                continue
            if is_roce(packet):
                self.packets.append(packet)

    def stop(self):
        self.is_stopping = True
        self.thread.join()
        # SOL_PACKET, PACKET_STATISTICS
        lost = struct.unpack('II', self.socket.getsockopt(263, 6, 8))[1]
        self.socket.close()
        return f'{lost} packets were not recorded' if lost else ''


def ip_length(packet):
    return 40 if packet[ETHERNET] >> 4 == 6 else 4 * (packet[ETHERNET] & 15)


def is_roce(packet):
    if packet[12:14] not in (b'\x08\x00', b'\x86\xdd'):
        return False
    protocol = packet[ETHERNET + (6 if packet[ETHERNET] >> 4 == 6 else 9)]
    udp = ETHERNET + ip_length(packet)
    return protocol == 17 and packet[udp + 2:udp + 4] == PORT.to_bytes(2, 'big')


def icrc(packet):
    """The ICRC of RoCEv2: over a pseudo header of ones, then the packet from the IP header on, with
    ones in the fields that routers change."""
    covered = bytearray(packet[ETHERNET:-ICRC])
    bth = ip_length(packet) + UDP
    if covered[0] >> 4 == 6:
        ones = [1, 2, 3, 7]                     # traffic class, flow label, hop limit
        covered[0] |= 0x0f
    else:
        ones = [1, 8, 10, 11]                   # type of service, time to live, checksum
    for offset in ones + [bth - 2, bth - 1, bth + 4]:
        covered[offset] = 0xff
    return zlib.crc32(covered, zlib.crc32(b'\xff' * 8)).to_bytes(ICRC, 'little')


def without_padding(packet):
    """Cuts the frame to its packet: an Ethernet frame may be longer than the IP packet in it."""
    ip = ETHERNET
    length = (struct.unpack('>H', packet[ip + 4:ip + 6])[0] + 40 if packet[ip] >> 4 == 6
              else struct.unpack('>H', packet[ip + 2:ip + 4])[0])
    return packet[:ETHERNET + length]
