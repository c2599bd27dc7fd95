#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""An RC ping-pong with pyverbs: pingpong.py DEVICE [SERVER]. README.md describes the exchange."""

import socket
import sys
import time

from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
import pyverbs.enums as e

PORT, GID_INDEX, ROUNDS, SIZE, PSN = 18620, 1, 1000, 64, 300


class Meeting:
    """Lines over TCP. One file for both directions would drop what it has read ahead when it writes."""

    def __init__(self, connection):
        self.reader, self.writer = connection.makefile("r"), connection.makefile("w")

    def swap(self, line):
        self.writer.write(line + "\n")
        self.writer.flush()
        return self.reader.readline().split()


def meet(server):
    """A TCP connection to the partner; the end without a server's address waits for it."""
    if server is None:
        listener = socket.create_server(("", PORT))
        return Meeting(listener.accept()[0])
    for _ in range(500):
        try:
            return Meeting(socket.create_connection((server, PORT)))
        except ConnectionRefusedError:
            time.sleep(0.01)
    sys.exit("pingpong: no server at " + server)


class End:
    def __init__(self, device):
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 16)
        self.out = MR(self.pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE)
        self.inn = MR(self.pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE)
        cap = QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1))
        self.qp.to_init(QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1))

    def connect(self, meeting):
        gid = self.context.query_gid(1, GID_INDEX).gid.replace(":", "")
        qpn, psn, gid = meeting.swap("%d %d %s" % (self.qp.qp_num, PSN, gid))
        route = GlobalRoute(dgid=GID(":".join(gid[i:i + 4] for i in range(0, 32, 4))), sgid_index=GID_INDEX)
        attr = QPAttr(port_num=1)
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attr.path_mtu, attr.dest_qp_num, attr.rq_psn = e.IBV_MTU_1024, int(qpn), int(psn)
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
        attr.sq_psn = PSN
        self.qp.to_rts(attr)
        meeting.swap("ready")

    def post_receive(self):
        self.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(self.inn.buf, SIZE, self.inn.lkey)]))

    def send(self, value):
        self.out.write(chr(value) * SIZE, SIZE)
        self.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(self.out.buf, SIZE, self.out.lkey)]))

    def wait(self, count):
        while count:
            found, completions = self.cq.poll(count)
            for completion in completions if found else ():
                if completion.status != e.IBV_WC_SUCCESS:
                    sys.exit("pingpong: a completion with status %d" % completion.status)
            count -= found

    def check(self, value):
        if self.inn.read(SIZE, 0) != bytes([value]) * SIZE:
            sys.exit("pingpong: wrong data")


def main():
    end = End(sys.argv[1])
    is_client = len(sys.argv) > 2
    end.post_receive()
    meeting = meet(sys.argv[2] if is_client else None)
    end.connect(meeting)
    for number in range(ROUNDS):
        ping, pong = number & 127, (number + 1) & 127
        if is_client:
            end.send(ping)
            end.wait(2)
            end.check(pong)
            end.post_receive()
        else:
            end.wait(1)
            end.check(ping)
            end.post_receive()
            end.send(pong)
            end.wait(1)
    meeting.swap("done")
    print("%d round trips of %d bytes, all right" % (ROUNDS, SIZE))


main()
