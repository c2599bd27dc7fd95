// SPDX-License-Identifier: BSD-2-Clause

// An RC ping-pong in Go: pingpong DEVICE [SERVER]. README.md describes the exchange. cgo knows the
// structures of verbs.h; a few lines of C wrap the verbs that are inline functions, and keep
// requests, which contain pointers, in memory of C.
package main

/*
#cgo LDFLAGS: -libverbs
#include <infiniband/verbs.h>
#include <stdlib.h>

static int postReceive(struct ibv_qp *qp, void *memory, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)memory, length, lkey };
	struct ibv_recv_wr request = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &request, &bad);
}

static int postSend(struct ibv_qp *qp, void *memory, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)memory, length, lkey };
	struct ibv_send_wr request = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	return ibv_post_send(qp, &request, &bad);
}

static int pollOne(struct ibv_cq *cq, struct ibv_wc *completion)
{
	return ibv_poll_cq(cq, 1, completion);
}

static struct ibv_mr *registerMemory(struct ibv_pd *pd, void *memory, size_t length)
{
	return ibv_reg_mr(pd, memory, length, IBV_ACCESS_LOCAL_WRITE);
}
*/
import "C"

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	"unsafe"
)

const (
	port     = 18620
	gidIndex = 1
	rounds   = 1000
	size     = 64
	psn      = 300
)

func fail(what ...interface{}) {
	fmt.Fprintln(os.Stderr, append([]interface{}{"pingpong:"}, what...)...)
	os.Exit(1)
}

func must(ok bool, what string) {
	if !ok {
		fail(what)
	}
}

// meeting is a TCP connection on which both ends say the same number of lines.
type meeting struct {
	connection net.Conn
	reader     *bufio.Reader
}

func meet(server string) *meeting {
	var connection net.Conn
	var err error

	if server == "" {
		var listener net.Listener
		listener, err = net.Listen("tcp4", fmt.Sprintf(":%d", port))
		if err == nil {
			connection, err = listener.Accept()
		}
	} else {
		for tries := 0; tries < 500; tries++ {
			connection, err = net.Dial("tcp4", fmt.Sprintf("%s:%d", server, port))
			if err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if err != nil {
		fail(err)
	}
	return &meeting{connection, bufio.NewReader(connection)}
}

func (m *meeting) swap(line string) string {
	fmt.Fprintln(m.connection, line)
	answer, err := m.reader.ReadString('\n')
	if err != nil {
		fail(err)
	}
	return answer
}

type end struct {
	context *C.struct_ibv_context
	cq      *C.struct_ibv_cq
	qp      *C.struct_ibv_qp
	mr      *C.struct_ibv_mr
	memory  unsafe.Pointer // of C, which does not move: what is received, then what is sent
	in, out []byte
}

func open(name string) *end {
	var count C.int
	e := &end{}

	list := C.ibv_get_device_list(&count)
	must(list != nil, "no devices")
	for _, device := range unsafe.Slice(list, int(count)) {
		if C.GoString(C.ibv_get_device_name(device)) == name {
			e.context = C.ibv_open_device(device)
		}
	}
	C.ibv_free_device_list(list)
	must(e.context != nil, "no such device")
	pd := C.ibv_alloc_pd(e.context)
	must(pd != nil, "ibv_alloc_pd")
	e.memory = C.calloc(2, size)
	e.in = unsafe.Slice((*byte)(e.memory), size)
	e.out = unsafe.Slice((*byte)(unsafe.Add(e.memory, size)), size)
	e.mr = C.registerMemory(pd, e.memory, 2*size)
	must(e.mr != nil, "ibv_reg_mr")
	e.cq = C.ibv_create_cq(e.context, 16, nil, nil, 0)
	must(e.cq != nil, "ibv_create_cq")

	init := C.struct_ibv_qp_init_attr{send_cq: e.cq, recv_cq: e.cq, qp_type: C.IBV_QPT_RC, sq_sig_all: 1}
	init.cap = C.struct_ibv_qp_cap{max_send_wr: 4, max_recv_wr: 4, max_send_sge: 1, max_recv_sge: 1}
	e.qp = C.ibv_create_qp(pd, &init)
	must(e.qp != nil, "ibv_create_qp")
	attr := C.struct_ibv_qp_attr{qp_state: C.IBV_QPS_INIT, port_num: 1}
	e.modify(&attr, C.IBV_QP_STATE|C.IBV_QP_PKEY_INDEX|C.IBV_QP_PORT|C.IBV_QP_ACCESS_FLAGS)
	return e
}

func (e *end) modify(attr *C.struct_ibv_qp_attr, mask C.int) {
	must(C.ibv_modify_qp(e.qp, attr, mask) == 0, "ibv_modify_qp")
}

func (e *end) connect(m *meeting) {
	var gid [16]byte
	var qpn, theirPsn uint32
	var digits string

	must(C.ibv_query_gid(e.context, 1, gidIndex, (*C.union_ibv_gid)(unsafe.Pointer(&gid))) == 0, "ibv_query_gid")
	theirs := m.swap(fmt.Sprintf("%d %d %s", e.qp.qp_num, psn, hex.EncodeToString(gid[:])))
	_, err := fmt.Sscan(theirs, &qpn, &theirPsn, &digits)
	raw, err2 := hex.DecodeString(strings.TrimSpace(digits))
	must(err == nil && err2 == nil && len(raw) == 16, "the partner said something else")

	attr := C.struct_ibv_qp_attr{qp_state: C.IBV_QPS_RTR, path_mtu: C.IBV_MTU_1024, dest_qp_num: C.uint32_t(qpn),
		rq_psn: C.uint32_t(theirPsn), min_rnr_timer: 12}
	copy((*[16]byte)(unsafe.Pointer(&attr.ah_attr.grh.dgid))[:], raw)
	attr.ah_attr.is_global = 1
	attr.ah_attr.port_num = 1
	attr.ah_attr.grh.sgid_index = gidIndex
	attr.ah_attr.grh.hop_limit = 64
	e.modify(&attr, C.IBV_QP_STATE|C.IBV_QP_AV|C.IBV_QP_PATH_MTU|C.IBV_QP_DEST_QPN|C.IBV_QP_RQ_PSN|
		C.IBV_QP_MAX_DEST_RD_ATOMIC|C.IBV_QP_MIN_RNR_TIMER)
	attr.qp_state = C.IBV_QPS_RTS
	attr.sq_psn = psn
	attr.timeout = 14
	attr.retry_cnt = 7
	attr.rnr_retry = 7
	e.modify(&attr, C.IBV_QP_STATE|C.IBV_QP_SQ_PSN|C.IBV_QP_TIMEOUT|C.IBV_QP_RETRY_CNT|C.IBV_QP_RNR_RETRY|
		C.IBV_QP_MAX_QP_RD_ATOMIC)
	m.swap("ready")
}

func (e *end) postReceive() {
	must(C.postReceive(e.qp, e.memory, size, e.mr.lkey) == 0, "ibv_post_recv")
}

func (e *end) send(value byte) {
	for i := range e.out {
		e.out[i] = value
	}
	must(C.postSend(e.qp, unsafe.Add(e.memory, size), size, e.mr.lkey) == 0, "ibv_post_send")
}

func (e *end) wait(count int) {
	var completion C.struct_ibv_wc

	for ; count > 0; count-- {
		found := C.pollOne(e.cq, &completion)
		for found == 0 {
			found = C.pollOne(e.cq, &completion)
		}
		must(found == 1, "ibv_poll_cq")
		if completion.status != C.IBV_WC_SUCCESS {
			fail(C.GoString(C.ibv_wc_status_str(completion.status)))
		}
	}
}

func (e *end) check(value byte) {
	must(bytes.Equal(e.in, bytes.Repeat([]byte{value}, size)), "wrong data")
}

func main() {
	must(len(os.Args) > 1, "usage: pingpong DEVICE [SERVER]")
	server := ""
	if len(os.Args) > 2 {
		server = os.Args[2]
	}
	e := open(os.Args[1])
	e.postReceive()
	m := meet(server)
	e.connect(m)
	for number := 0; number < rounds; number++ {
		ping, pong := byte(number&127), byte((number+1)&127)
		if server != "" {
			e.send(ping)
			e.wait(2)
			e.check(pong)
			e.postReceive()
		} else {
			e.wait(1)
			e.check(ping)
			e.postReceive()
			e.send(pong)
			e.wait(1)
		}
	}
	m.swap("done")
	fmt.Printf("%d round trips of %d bytes, all right\n", rounds, size)
}
