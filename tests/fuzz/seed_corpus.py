#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes first inputs for the fuzz targets: conversations that a mutation can be made of.

    tests/fuzz/seed_corpus.py <directory>      makes <directory>/<target>/<name>

What is in tests/fuzz/corpus was grown from these. A byte means here what the target's source makes
of it; when a target changes, so does this.
"""

import pathlib
import struct
import sys

# --- fuzz_receive --------------------------------------------------------------------------------

(RC_A, RC_B, RC_SHARED, RC_NO_READS, RC_RTR, RC_INIT, RC_SQD, XRC_SEND, XRC_RECV, UC_A, UC_B,
 UC_SHARED, UD_A, UD_SHARED, UD_MANAGER, SRQ, XRC_SRQ) = range(17)
MULTICAST = 15
PEER = {RC_A: RC_B, RC_B: RC_A, XRC_SEND: XRC_RECV, UC_A: UC_B, UC_B: UC_A}
(WRITE, WRITE_IMM, SEND, SEND_IMM, READ, COMPARE_SWAP, FETCH_ADD, LOCAL_INV, SEND_INV,
 ATOMIC_WRITE) = range(10)
FENCE, SIGNALED, SOLICITED, INLINE = 1, 2, 4, 8
KEY_OPEN, KEY_READABLE, KEY_LOCAL, KEY_FOREIGN, KEY_WINDOWED, KEY_DEVICE, KEY_NULL, KEY_WINDOW_1, \
    KEY_WINDOW_2 = range(9)
PLAIN, WITH_ICRC = 0, 1

SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = range(6)
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = range(6, 12)
READ_REQUEST, RESPONSE_FIRST, RESPONSE_MIDDLE, RESPONSE_LAST, RESPONSE_ONLY, ACK = range(12, 18)
ATOMIC_ACK, CMP_SWAP, FETCH, LAST_INV, ONLY_INV, ATOMIC_WR = 0x12, 0x13, 0x14, 0x16, 0x17, 0x1d
LENGTHS = {0: 0, 256: 1, 1: 2, 8: 3, 255: 4, 257: 5, 512: 6, 100: 7}


def packet(qp, op, length=0, psn=0, style=1, cut=0, flow=0, fields=b''):
    return bytes([0, flow, qp, op | LENGTHS[length] << 5, style, psn & 0xff, cut]) + fields


def reth(key=KEY_OPEN, offset=0, length=None):
    if length is None:
        return bytes([0, key, offset])
    return bytes([1, key, offset]) + struct.pack('>H', length)


def atomiceth(key=KEY_OPEN, offset=0):
    return bytes([key, offset, 1])


def send(qp, opcode, length=100, flags=SIGNALED, key=KEY_OPEN, offset=0):
    return bytes([5, qp, flags]) + struct.pack('>H', length) + bytes([opcode, key, offset])


def recv(qp, style=3):
    return bytes([7, qp, style])


def transmit(count=8):
    return bytes([10, count - 1])


def held(style=0, *more):
    return bytes([11, style, *more])


def settle(rounds=40):
    return bytes([12, rounds])


def wait(style=0x80):
    return bytes([13, style])


def move(qp, state):
    return bytes([14, qp, ('RESET', 'ERR', 'SQD', 'RTS').index(state)])


def receive_seeds():
    raw = bytes([0x04, 0x40, 0xff, 0xff, 0, 0, 0, 0, 0x80, 0xff, 0xff, 0xf8]) + bytes(12)
    yield 'bytes', bytes([PLAIN]) + bytes([4, 0, RC_A, 0, len(raw)]) + raw
    for name, qp in (('rc', RC_A), ('rc-shared', RC_SHARED), ('uc', UC_A), ('ud', UD_A),
                     ('xrc', XRC_SEND), ('ud-shared', UD_SHARED)):
        mode = bytes([PLAIN])
        to = {RC_SHARED: SRQ, UD_SHARED: SRQ, XRC_SEND: XRC_SRQ}.get(qp, PEER.get(qp, qp))
        for opcode in range(10):
            yield f'{name}-{opcode}', (mode + recv(to) + recv(to) + send(qp, opcode, 600) +
                                       send(qp, opcode, 8, SIGNALED | FENCE) + settle())
            yield f'{name}-{opcode}-unready', (mode + send(qp, opcode, 300, 0) + settle(6) +
                                               wait() + recv(to) + settle())
        yield f'{name}-lost', (mode + recv(to) + send(qp, SEND, 700) + send(qp, READ, 700) + transmit(2) +
                               held(2) + settle(4) + wait() + settle())
        yield f'{name}-damaged', mode + recv(to) + send(qp, SEND, 700) + transmit() + held(4, 3, 1) + settle()
        yield f'{name}-repeated', (mode + recv(to) + send(qp, FETCH_ADD) + transmit() + held(1) + held(1) +
                                   settle())
        for state in ('RESET', 'ERR', 'SQD'):
            yield f'{name}-{state}', (mode + recv(to) + send(qp, SEND, 700) + transmit(2) + settle(1) +
                                      move(qp, state) + settle() + move(qp, 'RTS') +
                                      send(qp, SEND) + settle())
    for key in range(9):
        yield f'write-key-{key}', bytes([PLAIN]) + settle() + packet(RC_A, WRITE_ONLY, 8, fields=reth(key)) + settle()
        yield f'read-key-{key}', bytes([PLAIN]) + settle() + packet(RC_A, READ_REQUEST, fields=reth(key, 0, 700)) + settle()
        yield f'atomic-key-{key}', bytes([PLAIN]) + settle() + packet(RC_A, FETCH, fields=atomiceth(key)) + settle()
    for name, qp in (('rc', RC_B), ('uc', UC_A), ('shared', RC_SHARED), ('none', RC_NO_READS), ('rtr', RC_RTR),
                     ('sqd', RC_SQD)):
        start = bytes([PLAIN]) + recv(qp) + recv(SRQ)
        yield f'{name}-message', (start + packet(qp, SEND_FIRST, 256) + packet(qp, SEND_MIDDLE, 256) +
                                  packet(qp, SEND_LAST_IMM, 100, cut=0x47) + settle())
        yield f'{name}-write', (start + packet(qp, WRITE_FIRST, 256, fields=reth(KEY_OPEN, 0, 512)) +
                                packet(qp, WRITE_LAST_IMM, 256, cut=0xff) + settle())
        yield f'{name}-gap', start + packet(qp, SEND_FIRST, 256) + packet(qp, SEND_LAST, 100, psn=1) + settle()
        yield f'{name}-too-long', start + packet(qp, SEND_ONLY, 257) + settle()
        yield f'{name}-read', start + packet(qp, READ_REQUEST, fields=reth(KEY_OPEN, 1, 1024)) * 3 + settle()
        yield f'{name}-atomics', (start + packet(qp, FETCH, fields=atomiceth()) + packet(qp, CMP_SWAP, fields=atomiceth()) +
                                  packet(qp, ATOMIC_WR, 8, fields=reth()) + packet(qp, FETCH, psn=-3, fields=atomiceth()) +
                                  settle())
    for syndrome in (0, 0x1f, 0x20, 0x21, 0x60, 0x61, 0x62, 0x63, 0x64, 0x40):
        ack = bytes([syndrome, 1])
        yield f'ack-{syndrome:x}', (bytes([PLAIN]) + settle() + send(RC_A, SEND, 600) + send(RC_A, READ, 600) +
                                    transmit() + packet(RC_A, ACK, psn=-4, fields=ack) + wait() + settle())
    yield 'responses', (bytes([PLAIN]) + settle() + send(RC_A, READ, 700) + transmit() +
                        packet(RC_A, RESPONSE_FIRST, 256, -3, fields=b'\0\0') + packet(RC_A, RESPONSE_MIDDLE, 256, -2) +
                        packet(RC_A, RESPONSE_LAST, 100, -1, fields=b'\0\0'))
    yield 'atomic-result', (bytes([PLAIN]) + settle() + send(RC_A, COMPARE_SWAP) + transmit() +
                            packet(RC_A, ATOMIC_ACK, 0, -1, fields=b'\0\0'))
    yield 'multicast', bytes([PLAIN]) + recv(UD_A) + recv(SRQ) + packet(MULTICAST, SEND_ONLY_IMM, 100, flow=1, fields=b'\0')
    yield 'invalidate', bytes([PLAIN]) + settle() + recv(RC_A) + packet(RC_A, ONLY_INV, 8, fields=bytes([KEY_WINDOW_2])) + settle()
    yield 'icrc', bytes([WITH_ICRC]) + recv(RC_B) + send(RC_A, SEND, 700) + send(RC_A, WRITE, 700) + settle()
    yield 'region-gone', (bytes([PLAIN]) + send(RC_A, READ, 700) + send(RC_A, WRITE, 700) + transmit(3) + bytes([15, 0]) +
                          settle())


# --- fuzz_rings ----------------------------------------------------------------------------------

R_RC, R_UC, R_UD, R_XRC_SEND, R_XRC_RECV = range(5)
(W_WRITE, W_WRITE_IMM, W_SEND, W_SEND_IMM, W_READ, W_COMPARE_SWAP, W_FETCH_ADD, W_LOCAL_INV, W_BIND_MW,
 W_SEND_INV) = range(10)
W_ATOMIC_WRITE = 15


def toggle(kind, which, *more):
    return bytes([0, kind | which << 4, *more])


def make_cq(which, depth):
    return toggle(2, which, depth)


def make_mr(which, length=1024, access=0x1f):
    return toggle(5, which, 0, 1, 0) + bytes([0]) + struct.pack('>H', length) + bytes([access])


def make_qp(which, kind, style=0x88, send_cq=0, recv_cq=1, srq=0):
    return toggle(10, which, 0, send_cq, recv_cq, srq, 0, kind, style, 0)


def make_srq(which, style):
    return toggle(4, which, 0, 0, 1, style)


def up(qp, peer, style=0x7d):
    return bytes([9, qp, peer, style])


def w_send(qp, opcode, flags=SIGNALED | 1 << 4, length=0x21, key=0, *more):
    return bytes([3, qp, 0, flags, length, 0, length, 0, opcode, key, *more])


def ring(qp):
    return bytes([5, qp, 0])


def abort(qp):
    return bytes([5, qp, 0xff])


def w_recv(qp, count=1):
    return bytes([6, qp, 0x41, 0, 0x41, 0, count])


def srq_recv(srq, count=1):
    return bytes([7, srq, 0x41, 0, 0x41, 0, count])


def poll(cq, count=8):
    return bytes([11, cq, 3, count])


def arm(cq):
    return bytes([11, cq, 1, 0])


def run(rounds=60, lost=0):
    return bytes([14, lost, rounds])


def rings_seeds():
    base = make_cq(0, 32) + make_cq(1, 32) + make_mr(0)
    ah = toggle(8, 0, 0, 1, 0)
    for name, kind in (('rc', R_RC), ('uc', R_UC), ('ud', R_UD)):
        pair = base + ah + make_qp(0, kind) + make_qp(1, kind) + up(0, 1) + up(1, 0)
        for opcode in (*range(10), W_ATOMIC_WRITE):
            flags = SIGNALED | 1 << 4 | (0xc0 if opcode in (W_COMPARE_SWAP, W_FETCH_ADD, W_ATOMIC_WRITE) else 0x40)
            yield f'{name}-{opcode}', (pair + w_recv(0) + w_recv(1) + arm(0) + arm(1) + w_send(0, opcode, flags) * 2 +
                                       ring(0) + run() + poll(0) + poll(1))
        yield f'{name}-full', pair + w_send(0, W_SEND) * 9 + ring(0) + run() + poll(0) + w_send(0, W_SEND) * 3
        yield f'{name}-unsignaled', pair + w_recv(1) * 4 + w_send(0, W_SEND, 1 << 4) * 3 + ring(0) + run() + w_send(0, W_SEND) * 6 + ring(0) + run() + poll(0)
        yield f'{name}-abort', pair + w_send(0, W_SEND) * 2 + ring(0) + w_send(0, W_SEND) * 2 + abort(0) + run() + poll(0)
        yield f'{name}-lost', pair + w_recv(1) + w_send(0, W_SEND) * 2 + ring(0) + run(3, 0xff) + bytes([15, 1]) * 4 + run()
        for state in range(8):
            mask = 1 | state << 26
            yield f'{name}-to-{state}', (pair + w_recv(1) * 2 + w_send(0, W_SEND) * 2 + ring(0) + run(1) +
                                         bytes([8, 0]) + struct.pack('>I', mask) + bytes(6) + w_send(0, W_SEND) + ring(0) + run())
    yield 'srq', base + make_srq(0, 0x48) + make_qp(0, R_RC, 0x89) + up(0, 0) + srq_recv(0) * 5 + w_send(0, W_SEND) * 2 + ring(0) + run() + poll(0) + poll(1)
    xrc = base + make_srq(0, 0x49) + make_qp(0, R_XRC_SEND) + make_qp(1, R_XRC_RECV) + up(0, 1) + up(1, 0)
    yield 'xrc', xrc + srq_recv(0) * 3 + w_send(0, W_SEND) * 2 + ring(0) + run() + poll(0) + poll(1)
    yield 'xrc-srq-gone', xrc + srq_recv(0) + w_send(0, W_SEND, SIGNALED | 2 << 4, 0xff) + ring(0) + run(1) + toggle(4, 0)
    yield 'overrun', make_cq(0, 2) + make_cq(1, 2) + make_mr(0) + make_qp(0, R_RC) + up(0, 0) + w_recv(0) * 6 + w_send(0, W_SEND) * 6 + ring(0) + run() + poll(0)
    yield 'multicast', base + ah + make_qp(0, R_UD) + up(0, 0) + bytes([10, 0]) + w_recv(0) + w_send(0, W_SEND) + ring(0) + run() + bytes([10, 0])
    window = toggle(7, 0, 0, 1)
    yield 'bind', base + window + make_qp(0, R_RC) + up(0, 0) + w_send(0, W_BIND_MW, SIGNALED, 0, 0, 0, 0, 0x16) + ring(0) + run() + toggle(5, 0) + toggle(7, 0)
    yield 'device', toggle(9, 0, 128, 3) + toggle(5, 0, 0, 0, 2, 0, 0, 64, 0x2f) + toggle(9, 0) + toggle(5, 0) + toggle(9, 0)
    yield 'resize', base + bytes([11, 0, 0, 4, 11, 0, 0, 40]) + make_srq(0, 0x48) + srq_recv(0) * 3 + bytes([12, 0, 0x20, 12, 0, 0x80, 12, 0, 0x31])
    yield 'rereg', base + toggle(0, 1) + bytes([13, 0, 1, 0, 0, 2, 0, 1, 7])
    yield 'busy', base + make_qp(0, R_RC) + toggle(0, 0) + toggle(2, 0) + toggle(10, 0) + toggle(2, 0)


# --- fuzz_codec ----------------------------------------------------------------------------------


def codec_seeds():
    for opcode in (*range(0x18), 0x1d, *range(0x20, 0x2c), 0x64, 0x65, 0x81, *range(0xa0, 0xb8)):
        bth = bytes([opcode, 0x40, 0xff, 0xff, 0, 0, 0, 7, 0x80, 0, 0, 1])
        yield f'packet-{opcode:02x}', bytes([0, 255]) + bth + bytes(range(48))
    for length in (16, 24, 32, 40, 44):
        yield f'short-{length}', bytes([1, 9, 0x13, 0x40, 0xff, 0xff]) + bytes(length)
    udp = struct.pack('>HHHH', 0xc000, 4791, 8 + 16, 0)
    ipv4 = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + 24, 7, 0x4000, 64, 17, 0x26b2, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    ipv6 = struct.pack('>IHBB', 0x60000000, 24, 17, 64) + b'\xfe\x80' + bytes(13) + b'\1' + b'\xfe\x80' + bytes(13) + b'\2'
    yield 'ipv4', bytes([2, 0]) + ipv4 + udp + bytes(16)
    yield 'ipv6', bytes([2, 0]) + ipv6 + udp + bytes(16)
    for damage in (0, 1):
        yield f'icrc-{damage}', bytes([3, 0]) + bytes(16) + bytes([0, 0, 7, 0, 9, damage]) + bytes(5 if damage else 1) + bytes(range(60))
    yield 'capture', bytes([4, 0]) + bytes(8) + bytes(33)


# --- fuzz_mad ------------------------------------------------------------------------------------


def mad_seeds():
    for kind in range(11):
        yield f'mad-{kind:02}', bytes([255, 1]) + bytes(17) + bytes([kind]) + bytes(range(238))
    yield 'short', bytes([255, 0, 1, 7, 2, 3]) + bytes(100)
    yield 'ipv6', bytes([9, 1]) + bytes(17) + bytes([7]) + bytes(22) + bytes([0, 0x60]) + bytes(range(34))


# --- fuzz_cm -------------------------------------------------------------------------------------

CLIENT, SERVER = 0, 1           # machine and slot in one byte
ARRIVES = bytes([20, 0])
LOST = bytes([14, 0])
DOUBLED = bytes([15, 0])
WAIT = bytes([12])


def connect(slot=CLIENT, qpn=3, transport=0):
    return bytes([0, slot, transport, qpn, 16, 20, 3, 1])


def resolve(slot=CLIENT):
    return bytes([1, slot, 0, 3, 16, 20, 3, 1])


def decide(what, slot, value=4):
    return bytes([2 + what, slot, value, 0, 28, 0])


def accept(slot=SERVER):
    return decide(0, slot)


def establish(slot=CLIENT):
    return decide(2, slot)


def disconnect(slot):
    return decide(3, slot)


def destroy(slot):
    return bytes([8, slot])


def cm_seeds():
    up = connect() + ARRIVES + accept() + ARRIVES + establish() + ARRIVES
    down = disconnect(CLIENT) + ARRIVES + disconnect(SERVER) + ARRIVES + WAIT + WAIT
    yield 'connect', up + down
    yield 'connect-xrc', connect(transport=2) + ARRIVES + accept() + ARRIVES + establish() + ARRIVES + down
    yield 'reject', connect() + ARRIVES + decide(1, SERVER) + ARRIVES
    yield 'reject-answer', connect() + ARRIVES + accept() + ARRIVES + decide(1, CLIENT) + ARRIVES
    yield 'slow-server', connect() + DOUBLED + ARRIVES + ARRIVES + WAIT + ARRIVES + accept() + ARRIVES
    yield 'slow-client', connect() + ARRIVES + accept() + DOUBLED + ARRIVES + ARRIVES + establish() + ARRIVES + down
    yield 'rtu-lost', connect() + ARRIVES + accept() + ARRIVES + establish() + LOST + WAIT + ARRIVES + ARRIVES + down
    yield 'data-first', connect() + ARRIVES + accept() + ARRIVES + decide(5, SERVER) + down
    yield 'all-lost', connect() + (LOST + WAIT) * 5
    yield 'rep-lost', connect() + ARRIVES + accept() + (LOST + WAIT) * 9
    yield 'crossing', up + disconnect(CLIENT) + disconnect(SERVER) + ARRIVES * 4 + WAIT
    yield 'destroyed', up + destroy(CLIENT) + ARRIVES + destroy(SERVER) + ARRIVES + WAIT
    yield 'destroyed-early', connect() + ARRIVES + destroy(CLIENT) + ARRIVES
    yield 'destroyed-answer', connect() + ARRIVES + accept() + destroy(SERVER) + ARRIVES * 3
    yield 'stale', up + connect(slot=2) + ARRIVES * 5
    yield 'no-listener', bytes([11, 1]) + connect() + ARRIVES + bytes([1]) + ARRIVES
    yield 'listener-goes', connect() + ARRIVES + bytes([11, 1]) + ARRIVES
    yield 'farewell', up + b''.join(bytes([13, 0, i]) for i in range(8)) + ARRIVES * 4
    yield 'sidr', resolve() + ARRIVES + decide(4, SERVER) + ARRIVES
    yield 'sidr-lost', resolve() + (LOST + WAIT) * 5
    for kind in range(11):
        yield f'invented-{kind:02}', up + bytes([18, 1, kind, CLIENT, SERVER, 0]) * 2 + down
        yield f'invented-to-client-{kind:02}', up + bytes([18, 0, kind, SERVER, CLIENT, 1, 8, 64]) * 2 + down


# --- fuzz_shm_link -----------------------------------------------------------------------------------

RIGHT_FD = 4
OFFER = bytes([0, 1, 1, 1, 1, 1, RIGHT_FD, RIGHT_FD, RIGHT_FD, 1])
GIVE_SEGMENT = bytes([2, 0, 1, 1, 1, 1, 1, RIGHT_FD])
ROWS = bytes([7, 0, 0, 1, 1])
RECEIVE, SEND_OUT, SLEEP, BURY = bytes([9]), bytes([11]), bytes([12, 0]), bytes([12, 1])
LINE_WRITE, LINE_READ, LINE_ADD, LINE_SWAP, LINE_SEND = range(5)


def line_post(opcode, offset=0, length=None):
    return bytes([10, opcode]) + struct.pack('>H', offset) + \
        (bytes([1]) if length is None else bytes([0]) + struct.pack('>H', length))


def line_record(opcode, psn=2, data=b'', more=0):
    return bytes([3, opcode, psn, 1, len(data)]) + data + bytes([more])


def line_train(opcode, packets, references, psn=2, count=None):
    count = len(references) if count is None else count
    return bytes([4, 1, opcode, psn, 1, packets, 1, count, 0]) + \
        b''.join(bytes([1]) + struct.pack('>H', at) + bytes([1]) + struct.pack('>H', length) + bytes([1])
                 for at, length in references) + bytes([0])


def line_words(consumed=0):
    return bytes([6, 0, 0, 0, 0, 1, 0, consumed])


def line_seeds():
    mapped = OFFER + ROWS + line_post(LINE_WRITE) + SEND_OUT + GIVE_SEGMENT + line_record(ACK, 2, bytes(8)) + RECEIVE
    at_once = mapped + line_post(LINE_WRITE, 1) + SEND_OUT + line_post(LINE_WRITE) * 2
    for opcode in range(5):
        yield f'direct-{opcode}', mapped + line_post(opcode) + SEND_OUT
        yield f'direct-beyond-{opcode}', mapped + line_post(opcode, 8190) + SEND_OUT
    yield 'direct-long', mapped + line_post(LINE_WRITE, 0, 8000) + line_post(LINE_READ, 100, 8000) + SEND_OUT
    yield 'at-once', at_once + line_post(LINE_WRITE, 8190) + line_post(LINE_WRITE, 2, 200)
    yield 'at-once-other-rows', at_once + bytes([7, 1, 0, 0, 4, 1, 0, 0, 0]) + line_post(LINE_WRITE) + \
        bytes([7, 0, 0, 0, 4, 1, 0, 0, 0]) + line_post(LINE_WRITE) + ROWS + line_post(LINE_WRITE)
    yield 'at-once-renewed', at_once + OFFER[:2] + bytes([0, 1, 2, 3, 4, 5, 6, 7, 8]) + OFFER[3:] + line_post(LINE_WRITE)
    yield 'small-file', mapped.replace(GIVE_SEGMENT, bytes([2, 0, 1, 1, 1, 1, 1, 1])) + line_post(LINE_WRITE) + SEND_OUT
    yield 'renewed', OFFER + line_post(LINE_SEND) + SEND_OUT + OFFER[:4] + bytes([0]) + bytes(8) + OFFER[5:] + OFFER + RECEIVE
    yield 'other-incarnation', OFFER + OFFER[:2] + bytes([0, 1, 2, 3, 4, 5, 6, 7, 8]) + OFFER[3:] + RECEIVE
    yield 'packets', OFFER + line_record(SEND_ONLY, 2, bytes(12)) + line_record(ACK, 2, bytes(8)) + RECEIVE + SEND_OUT
    yield 'write', OFFER + line_record(WRITE_ONLY, 2, bytes(28)) + RECEIVE + SEND_OUT
    yield 'too-short', OFFER + line_record(SEND_ONLY) + RECEIVE + SEND_OUT
    yield 'scribbled', OFFER + line_record(SEND_ONLY, 2, bytes(12)) + bytes([5, 1, 0, 8, 0, 0, 0, 0x80, 0xff, 0xff, 0, 0]) + RECEIVE
    yield 'full', OFFER + (line_post(LINE_SEND, 0, 8000) * 8 + SEND_OUT) * 6 + SLEEP + line_words(4) + SEND_OUT
    yield 'dead', OFFER + bytes([8, 0, 0x40, 0, 0, 1]) + line_post(LINE_SEND) + SEND_OUT + BURY + OFFER
    yield 'closed', mapped + bytes([8, 1, 1]) + line_post(LINE_WRITE) + SEND_OUT
    yield 'sleeper', OFFER + bytes([8, 2, 1, 0, 0, 0, 9]) + line_post(LINE_SEND) + SEND_OUT + SLEEP
    yield 'forgotten', mapped + bytes([2, 2, 1, 1, 1, 1, 1, RIGHT_FD]) + line_post(LINE_WRITE) + SEND_OUT
    only, first, middle, last = range(4)
    yield 'train', mapped + line_train(only, 1, [(0, 1000)]) + RECEIVE + SEND_OUT + \
        line_train(only, 3, [(5, 1000), (4000, 1), (0, 1500)], 3) + RECEIVE + SEND_OUT
    yield 'train-parts', mapped + line_train(only, 1, [(0, 100)]) + line_train(first, 1, [(0, 1024)], 3) + \
        line_train(last, 2, [(9, 1400)], 4) + RECEIVE + SEND_OUT
    yield 'train-beyond', mapped + line_train(only, 1, [(8000, 1000)]) + RECEIVE + SEND_OUT
    yield 'train-longer', mapped + line_train(only, 4, [(0, 4000)]) + RECEIVE + SEND_OUT
    yield 'train-packets', mapped + line_train(only, 3, [(0, 1000)]) + RECEIVE + SEND_OUT
    yield 'train-unmapped', OFFER + ROWS + line_train(only, 1, [(0, 1000)]) + RECEIVE + SEND_OUT
    yield 'train-middle', mapped + line_train(middle, 1, [(0, 1024)]) + RECEIVE + SEND_OUT
    yield 'train-counts', mapped + line_train(only, 1, [(0, 1000)] * 32) + \
        line_train(only, 1, [], count=0) + RECEIVE + SEND_OUT
    yield 'train-sent', mapped + line_post(LINE_SEND, 0, 8000) * 2 + SEND_OUT
    yield 'asked', OFFER + bytes([2, 1, 1, 1, 1, 1, 1, RIGHT_FD])


# --- fuzz_tags -----------------------------------------------------------------------------------

TMH_NO_TAG, TMH_RENDEZVOUS, TMH_FIN, TMH_EAGER, TMH_UNKNOWN = range(5)
T_SETTLE, T_FIN_RECEIVE = bytes([13, 60]), bytes([9])


def tag_length(length):
    return bytes([0]) + struct.pack('>H', length)


def tag_add(tag, length=600, mask=3, has_count=0):
    return bytes([0, has_count * 2, tag, mask]) + tag_length(length)


def tag_message(opcode, tag, length=None, header=0, slot=0):
    """`header` is the style of the RVH, whose length is 500 bytes."""
    rest = b'' if length is None else tag_length(length)
    return (bytes([6, slot | (0x20 if rest else 0), opcode, tag, header]) +
            (struct.pack('>I', 500) if header & 8 else struct.pack('>H', 500)) +
            (bytes(8) if header & 16 else b'') + (bytes(4) if header & 32 else b'') + rest)


def tag_seeds():
    for depth in 0, 1:
        begin = bytes([depth])
        for opcode in range(5):
            yield f'{depth}-match-{opcode}', (begin + T_FIN_RECEIVE + tag_add(1) + tag_add(2, 300) +
                                              tag_message(opcode, 2, 100) + T_SETTLE +
                                              tag_message(opcode, 1) + T_SETTLE)
            yield f'{depth}-unexpected-{opcode}', (begin + bytes([5]) + tag_length(700) + tag_message(opcode, 1, 600) +
                                                   T_SETTLE + tag_add(1) + bytes([4, 3, 0]) + T_SETTLE +
                                                   tag_add(2, has_count=1) + tag_message(opcode, 2, 10) + T_SETTLE)
            for length in 0, 1, 15, 16, 31, 32, 64, 65, 300, 700:
                yield f'{depth}-length-{opcode}-{length}', begin + tag_add(1) + tag_message(opcode, 1, length) + T_SETTLE
        for header in range(64):
            yield f'{depth}-anywhere-{header}', (begin + T_FIN_RECEIVE + tag_add(1) +
                                                 tag_message(TMH_RENDEZVOUS, 1, header=header) + T_SETTLE)
        yield f'{depth}-short', begin + tag_add(1, 40) + tag_message(TMH_RENDEZVOUS, 1) + T_SETTLE
        yield f'{depth}-delete', (begin + tag_add(1) + bytes([11, 1, 3, 0, 11, 1]) + tag_add(2) +
                                  tag_message(TMH_EAGER, 1, 600) + bytes([11, 7, 12, 0, 3, 1]) + T_SETTLE)
        yield f'{depth}-own', (begin + T_FIN_RECEIVE * 3 + tag_add(1) + bytes([10, 200]) +
                               tag_message(TMH_RENDEZVOUS, 1) + bytes([10, 100]) + T_SETTLE + bytes([10, 100]) + T_SETTLE)
        for style in 0, 1, 3:
            yield f'{depth}-end-{style}', (begin + T_FIN_RECEIVE + b''.join(tag_add(i) for i in range(4)) +
                                           b''.join(tag_message(TMH_RENDEZVOUS, i, slot=i) for i in range(4)) +
                                           bytes([13, 6, 15, style]) + T_SETTLE)
        yield f'{depth}-lost', (begin + T_FIN_RECEIVE + tag_add(1) + tag_message(TMH_RENDEZVOUS, 1) +
                                bytes([13, 3, 12, 255, 14, 0x80]) + T_SETTLE)
        yield f'{depth}-bytes', begin + tag_add(1, mask=0) + bytes([6, 0x80, 40, TMH_EAGER]) + bytes(39) + T_SETTLE


# --- fuzz_mpa_frame ------------------------------------------------------------------------------

MPA_REQUEST, MPA_REPLY = b'MPA ID Req Frame', b'MPA ID Rep Frame'
M, C, R, S = 0x80, 0x40, 0x20, 0x10


def mpa_frame(key=MPA_REQUEST, flags=S, revision=2, words=b'\0\x10\0\x10', data=b'', length=None):
    private = (words if flags & S else b'') + data
    return key + struct.pack('>BBH', flags, revision, len(private) if length is None else length) + private


def mpa_frame_seeds():
    for key in MPA_REQUEST, MPA_REPLY:
        kind = key == MPA_REPLY
        for flags in 0, M, C, R, S, S | C, 0x0f, 0xff:
            yield f'{kind}-{flags:02x}', bytes([80, kind]) + mpa_frame(key, flags, data=b'private')
        for words in b'\xc0\x01\xc0\x01', b'\x80\0\x40\0', b'\x3f\xff\x3f\xff':
            yield f'{kind}-{words.hex()}', bytes([200, kind]) + mpa_frame(key, words=words)
        yield f'{kind}-plain', bytes([80, kind]) + mpa_frame(key, 0, 1)
        yield f'{kind}-long', bytes([10, kind]) + mpa_frame(key, data=bytes(508))
        yield f'{kind}-too-long', bytes([10, kind]) + mpa_frame(key, data=bytes(509))
        yield f'{kind}-short', bytes([10, kind]) + mpa_frame(key, length=3)
        yield f'{kind}-revision', bytes([10, kind]) + mpa_frame(key, revision=3)
        yield f'{kind}-behind', bytes([0, kind | 2]) + mpa_frame(key) + bytes(40)
        yield f'{kind}-cut', bytes([0, kind]) + mpa_frame(key)[:17]
        yield f'{kind}-key', bytes([0, not kind]) + mpa_frame(key)


# --- fuzz_mpa ------------------------------------------------------------------------------------

U_CONNECTED, U_ENDED, U_FPDU = bytes([3]), bytes([6]), bytes([11])


def u_offer(kind, ird=4, ord=6, private=2):
    return bytes([kind]) + struct.pack('>HHB', ird, ord, private)


def u_carry(end, step=255):
    return bytes([12, end, step] + [14, 1 - end, step]) * (3 if step == 255 else 250 // step)


def u_frame(to, flags, words=0x00040006, private=0):
    return bytes([8, to]) + struct.pack('>HIB', flags, words, private) + bytes([14, to, 255, 14, to, 255])


def startup_seeds():
    asked = u_offer(0) + U_CONNECTED + u_carry(0)
    for config in 0x0a, 0x1a, 0x05, 0x0f, 0x00:
        begin = bytes([config, 0x0a])
        yield f'{config:02x}-up', begin + asked + u_offer(1) + u_carry(1) + U_FPDU + b'\1' + U_ENDED + b'\0' + U_ENDED + b'\1'
        yield f'{config:02x}-slow', begin + u_offer(0) + U_CONNECTED + u_carry(0, 5) + u_offer(1) + u_carry(1, 5)
        yield f'{config:02x}-reject', begin + asked + u_offer(2) + u_carry(1) + bytes([10, 3]) * 2
        yield f'{config:02x}-second', begin + asked + U_ENDED + b'\0' + U_CONNECTED + u_carry(0) + u_offer(1) + u_carry(1)
        yield f'{config:02x}-refused', begin + u_offer(0) + bytes([4, 1])
        yield f'{config:02x}-gone', begin + u_offer(0) + bytes([4, 0])
        yield f'{config:02x}-waits', begin + u_offer(0) + bytes([10, 2]) + U_CONNECTED
        for end in 0, 1:
            yield f'{config:02x}-time-{end}', begin + asked + bytes([10, 2 | end]) + u_offer(1) + bytes([10, 2 | end]) * 2
            yield f'{config:02x}-abandon-{end}', begin + asked + bytes([5, end]) + u_carry(1) + bytes([10, 2 | end])
            yield f'{config:02x}-ends-{end}', begin + asked + u_offer(1) + U_ENDED + bytes([end]) + u_carry(1)
            yield f'{config:02x}-meddle-{end}', begin + u_offer(0) + U_CONNECTED + bytes([12, 0, 255, 7, 1, 0x80, 3]) + u_carry(0)
            yield f'{config:02x}-bytes-{end}', begin + u_offer(0) + U_CONNECTED + bytes([9, end, 8]) + b'MPA ID R' + bytes([14, end, 255])
        for flags in 0x00c1, 0x00d1, 0x00e1, 0x00c0, 0x0041, 0x0001, 0x0021, 0x03c1, 0x05c1, 0x09c1, 0x01c1:
            for words in 0x00040006, 0x3fff3fff, 0x00810081:
                first = begin + u_offer(0) + U_CONNECTED
                yield f'{config:02x}-{flags:04x}-{words:08x}-request', first + u_frame(1, flags, words) + u_offer(1) + u_carry(1) + U_FPDU + b'\1'
                yield f'{config:02x}-{flags:04x}-{words:08x}-reply', first + u_frame(0, flags, words) + u_carry(0) + U_CONNECTED + u_frame(0, 1)


# --- fuzz_rdmap ----------------------------------------------------------------------------------

def tagged(opcode, last=0x40, stag=0x12345678, to=0x1000, data=bytes(8)):
    return struct.pack('>BBIQ', 0x81 | last, 0x40 | opcode, stag, to) + data


def untagged(opcode, queue, msn=1, mo=0, last=0x40, inv=0, data=b''):
    return struct.pack('>BBIIII', 1 | last, 0x40 | opcode, inv, queue, msn, mo) + data


def rdmap_seeds():
    read = struct.pack('>IQIIQ', 1, 2, 3, 4, 5)
    send = untagged(3, 0)
    ulpdus = {'write': tagged(0), 'response': tagged(2, 0), 'read': untagged(1, 1, data=read),
              'read-cut': untagged(1, 1, data=read[:20]), 'read-long': untagged(1, 1, data=read + b'x'),
              'queue': untagged(3, 3), 'opcode': untagged(8, 0), 'short': send[:9], 'model': tagged(3)}
    for opcode in range(3, 7):
        ulpdus[f'send-{opcode}'] = untagged(opcode, 0, 7, 1442, inv=9, data=b'data')
    for control, headers in (('1202c000', struct.pack('>H', 18) + send), ('0101e000', struct.pack('>H', 46) + send + read),
                             ('20020000', b''), ('21020300', struct.pack('>H', 18) + send), ('1100c000', b'\0\x0e' + tagged(0)),
                             ('10010700', struct.pack('>H', 46) + send + read), ('1202c000', send[:7]), ('00002000', read)):
        ulpdus[f'terminate-{control}-{len(headers)}'] = untagged(7, 2, data=bytes.fromhex(control) + headers)
    for name, ulpdu in ulpdus.items():
        yield name, bytes([200, 0]) + ulpdu
        yield f'{name}-right', bytes([20, 1]) + ulpdu


# --- fuzz_arrivals -------------------------------------------------------------------------------

def a_data(step, length, stag=7, to=9):
    return bytes([step, stag, to]) + struct.pack('>H', length)


def a_response(length):
    return bytes([3, 5]) + struct.pack('>QH', 0x1000, length)


def a_deliver(length=0xffff, short=False):
    return bytes([9 + 12 * 11 if short else 9]) + struct.pack('>H', length)


def a_ulpdu(ulpdu, framed=True):
    return bytes([4 if framed else 5, len(ulpdu)]) + ulpdu


def arrivals_seeds():
    read = bytes([2]) + struct.pack('>H', 40)
    for style in 0x1f, 0x9e, 0x80, 0x1b:
        begin = bytes([style])
        for step in 0, 1, 12 + 4, 24, 36:
            for length in 0, 1, 100, 3000:
                yield f'{style:02x}-{step}-{length}', begin + a_data(step, length) * 2 + a_deliver()
        yield f'{style:02x}-reads', begin + read * 3 + a_deliver() + bytes([7]) + read + a_deliver()
        yield f'{style:02x}-responses', begin + a_response(0) + a_response(200) + a_deliver() + a_response(3000) + a_deliver()
        yield f'{style:02x}-cut', begin + a_data(0, 50) + a_deliver(30, True) * 6 + a_data(1, 5) + a_deliver(7, True) * 9
        yield f'{style:02x}-damage', begin + a_data(0, 50) * 3 + bytes([6, 0x20, 0, 0, 90]) + a_deliver()
        yield f'{style:02x}-smaller', begin + a_data(0, 500) + bytes([8, 1, 0]) + a_data(0, 500) + a_deliver()
        for name, seed in rdmap_seeds():
            yield f'{style:02x}-ulpdu-{name}', begin + a_data(0, 5) + a_ulpdu(seed[2:]) + a_data(0, 5) + a_deliver()
        yield f'{style:02x}-bytes', begin + a_ulpdu(b'\xff\xff rubbish', False) + a_deliver()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for target, seeds in (('codec', codec_seeds), ('receive', receive_seeds), ('rings', rings_seeds),
                          ('mad', mad_seeds), ('cm', cm_seeds), ('shm_link', line_seeds), ('tags', tag_seeds),
                          ('mpa_frame', mpa_frame_seeds), ('mpa', startup_seeds), ('rdmap', rdmap_seeds),
                          ('arrivals', arrivals_seeds)):
        directory = pathlib.Path(sys.argv[1]) / target
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in seeds():
            (directory / name).write_bytes(data)


main()
