/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the connection manager as tshark reads them: each kind by its name, and every field
 * that tshark shows with its intended value, over IPv4 and IPv6. tests/unit/test_mad.c has what
 * tshark does not show, and also flow label and packet rate of a REQ, which version 4.0 reads from
 * the wrong bytes.
 */
#include "base/bytes.h"
#include "base/crc.h"
#include "harness.h"
#include "support_golden.h"
#include "support_meant.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/service.h"

#include <string.h>

#define IP_MAX (VB_IPV6_SIZE + VB_UDP_SIZE)
#define UDP_MAX (VB_BTH_SIZE + VB_DETH_SIZE + VB_MAD_SIZE + VB_ICRC_SIZE)

static struct vb_flow flow_over(bool is_ipv4)
{
	struct vb_flow flow = {
		.source = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 0x01 } },
		.destination = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 0x02 } },
		.source_port = 0xc000,
		.hop_limit = 64,
	};

	if (is_ipv4) {
		flow.source = vb_gid_from_ipv4(0xc0a80101);
		flow.destination = vb_gid_from_ipv4(0xc0a80102);
	}
	return flow;
}

/* Adds a message from QP 1 to QP 1, with all headers around it. */
static struct meant_packet *add(const struct vb_mad *mad, bool is_ipv4)
{
	struct vb_flow flow = flow_over(is_ipv4);
	struct vb_bth bth = {
		.opcode = 0x64, .migrated = true, .pkey = 0xffff, .destination = VB_MAD_QPN
	};
	struct vb_deth deth = { .qkey = VB_MAD_QKEY, .source = VB_MAD_QPN };
	uint32_t length = UDP_MAX - VB_ICRC_SIZE;
	uint8_t ip[IP_MAX + UDP_MAX];
	uint32_t ip_length = vb_flow_store_ip_udp(ip, &flow, UDP_MAX, 0);
	uint8_t *udp = ip + ip_length;
	uint32_t crc;

	vb_bth_store(udp, &bth);
	vb_deth_store(udp + VB_BTH_SIZE, &deth);
	vb_mad_store(udp + VB_BTH_SIZE + VB_DETH_SIZE, mad);
	crc = vb_icrc_begin(&flow, UDP_MAX, 0, udp);
	crc = vb_crc32(crc, udp + VB_BTH_SIZE, length - VB_BTH_SIZE);
	vb_icrc_store(udp + length, crc);
	return meant_add(ip, ip_length + UDP_MAX);
}

/* --- messages --------------------------------------------------------------------------------- */

static struct meant_packet *add_named(const struct vb_mad *mad, bool is_ipv4, const char *name)
{
	struct meant_packet *message = add(mad, is_ipv4);

	mean(message, "_ws.col.Info", name);
	mean(message, "infiniband.bth.opcode", "100");
	mean(message, "infiniband.bth.destqp", "1");
	mean(message, "infiniband.deth.q_key", "0x80010000");
	mean(message, "infiniband.mad.baseversion", "1");
	mean(message, "infiniband.mad.mgmtclass", "7");
	mean(message, "infiniband.mad.classversion", "2");
	mean(message, "infiniband.mad.method", "3");
	mean(message, "infiniband.mad.status", "0");
	mean(message, "infiniband.mad.transactionid", "0x123456789abcdef0");
	mean(message, "infiniband.mad.attributemodifier", "0x87654321");
	return message;
}

#define COMMON                                                                             \
	.transaction = 0x123456789abcdef0, .modifier = 0x87654321, .local_id = 0xa1b2c3d4, \
	.remote_id = 0x01020304

static struct vb_mad req_over(bool is_ipv4)
{
	struct vb_flow flow = flow_over(is_ipv4);
	struct vb_service_ip ip = { .source_port = 50000,
				    .source = flow.source,
				    .destination = flow.destination };
	struct vb_mad mad = {
		.kind = VB_MAD_REQ,
		COMMON,
		.req = {
			.service = vb_service_id(VB_SERVICE_SPACE_TCP, 7471),
			.ca_guid = 0x0002030405060708,
			.qkey = 0x11223344,
			.qpn = { 0xabcdef },
			.responder_resources = 16,
			.eecn = 0x010203,
			.initiator_depth = 15,
			.remote_eecn = 0x040506,
			.remote_response_timeout = 20,
			.transport = VB_MAD_TRANSPORT_EXTENDED,
			.has_flow_control = 1,
			.starting_psn = { 0xfedcba },
			.local_response_timeout = 19,
			.retry_count = 7,
			.pkey = 0xffff,
			.mtu = 5,
			.rnr_retry_count = 6,
			.cm_retries_max = 15,
			.has_srq = 1,
			.extended_transport = VB_MAD_EXTENDED_XRC,
			.primary = {
				.local_lid = VB_MAD_LID_PERMISSIVE,
				.remote_lid = 0x1234,
				.local_gid = flow.source,
				.remote_gid = flow.destination,
				.flow_label = 0xabcde,
				.packet_rate = 0x2b,
				.traffic_class = 0x68,
				.hop_limit = 64,
				.service_level = 9,
				.is_subnet_local = 1,
				.ack_timeout = 18,
			},
			.alternate = {
				.local_lid = 0x0102,
				.remote_lid = 0x0304,
				.local_gid = flow.destination,
				.remote_gid = flow.source,
				.flow_label = 0x54321,
				.packet_rate = 0x15,
				.traffic_class = 0x11,
				.hop_limit = 3,
				.service_level = 6,
				.ack_timeout = 21,
			},
		},
	};

	vb_service_ip_store(mad.private_data, &ip);
	memset(mad.private_data + VB_SERVICE_IP_SIZE, 0x77, 92 - VB_SERVICE_IP_SIZE);
	return mad;
}

struct field_value {
	const char *field; /* the name in tshark */
	const char *value;
};

static const struct field_value req_fields[] = {
	{ "infiniband.cm.req", "0xa1b2c3d4" },
	{ "infiniband.cm.req.serviceid.protocol", "6" },
	{ "infiniband.cm.req.serviceid.dport", "7471" },
	{ "infiniband.cm.req.localcaguid", "0x0002030405060708" },
	{ "infiniband.cm.req.localqkey", "0x11223344" },
	{ "infiniband.cm.req.localqpn", "0xabcdef" },
	{ "infiniband.cm.req.responderres", "16" },
	{ "infiniband.cm.req.localeecn", "0x010203" },
	{ "infiniband.cm.req.initdepth", "15" },
	{ "infiniband.cm.req.remoteeecn", "0x040506" },
	{ "infiniband.cm.req.remoteresptout", "20" },
	{ "infiniband.cm.req.transpsvctype", "3" },
	{ "infiniband.cm.req.e2eflowctrl", "1" },
	{ "infiniband.cm.req.startpsn", "0xfedcba" },
	{ "infiniband.cm.req.localresptout", "19" },
	{ "infiniband.cm.req.retrcount", "7" },
	{ "infiniband.cm.req.pkey", "0xffff" },
	{ "infiniband.cm.req.pppmtu", "5" },
	{ "infiniband.cm.req.rdcexist", "0" },
	{ "infiniband.cm.req.rnrretrcount", "6" },
	{ "infiniband.cm.req.maxcmretr", "15" },
	{ "infiniband.cm.req.srq", "1" },
	{ "infiniband.cm.req.ext_transport", "1" },
	{ "infiniband.cm.req.prim_locallid", "0xffff" },
	{ "infiniband.cm.req.prim_remotelid", "0x1234" },
	{ "infiniband.cm.req.prim_tfcclass", "0x68" },
	{ "infiniband.cm.req.prim_hoplim", "64" },
	{ "infiniband.cm.req.prim_sl", "9" },
	{ "infiniband.cm.req.prim_subnetlocal", "1" },
	{ "infiniband.cm.req.prim_localacktout", "18" },
	{ "infiniband.cm.req.alt_locallid", "0x0102" },
	{ "infiniband.cm.req.alt_remotelid", "0x0304" },
	{ "infiniband.cm.req.alt_tfcclass", "0x11" },
	{ "infiniband.cm.req.alt_hoplim", "3" },
	{ "infiniband.cm.req.alt_sl", "6" },
	{ "infiniband.cm.req.alt_subnetlocal", "0" },
	{ "infiniband.cm.req.alt_localacktout", "21" },
	{ "infiniband.cm.req.ip_cm.majv", "0" },
	{ "infiniband.cm.req.ip_cm.minv", "0" },
	{ "infiniband.cm.req.ip_cm.sport", "50000" },
};

static struct meant_packet *add_req(bool is_ipv4)
{
	struct vb_mad mad = req_over(is_ipv4);
	struct meant_packet *message = add_named(&mad, is_ipv4, "CM: ConnectRequest");

	for (uint32_t i = 0; i < sizeof(req_fields) / sizeof(req_fields[0]); i++)
		mean(message, req_fields[i].field, req_fields[i].value);
	return message;
}

static void begin(void)
{
	if (!golden_has_tshark())
		SKIP("tshark is not installed");
}

TEST(tshark_reads_a_connect_request_over_ipv4)
{
	struct meant_packet *message;

	begin();
	message = add_req(true);
	mean(message, "infiniband.cm.req.ip_cm.ipv", "4");
	mean(message, "infiniband.cm.req.prim_localgid_ipv4", "192.168.1.1");
	mean(message, "infiniband.cm.req.prim_remotegid_ipv4", "192.168.1.2");
	mean(message, "infiniband.cm.req.ip_cm.sip4", "192.168.1.1");
	mean(message, "infiniband.cm.req.ip_cm.dip4", "192.168.1.2");
	meant_expect_tshark_agrees("");
}

TEST(tshark_reads_a_connect_request_over_ipv6)
{
	struct meant_packet *message;

	begin();
	message = add_req(false);
	mean(message, "infiniband.cm.req.ip_cm.ipv", "6");
	mean(message, "infiniband.cm.req.prim_localgid", "2001:db8::1");
	mean(message, "infiniband.cm.req.prim_remotegid", "2001:db8::2");
	mean(message, "infiniband.cm.req.ip_cm.sip6", "2001:db8::1");
	mean(message, "infiniband.cm.req.ip_cm.dip6", "2001:db8::2");
	meant_expect_tshark_agrees("");
}

static void add_rep(void)
{
	struct vb_mad mad = {
		.kind = VB_MAD_REP,
		COMMON,
		.rep = {
			.qkey = 0x11223344,
			.qpn = { 0xabcdef },
			.eecn = 0x010203,
			.starting_psn = { 0xfedcba },
			.responder_resources = 12,
			.initiator_depth = 13,
			.target_ack_delay = 15,
			.failover = 2,
			.has_flow_control = 1,
			.rnr_retry_count = 5,
			.has_srq = 1,
			.ca_guid = 0x0002030405060708,
		},
	};
	struct meant_packet *message = add_named(&mad, true, "CM: ConnectReply");

	mean(message, "infiniband.cm.rep", "0xa1b2c3d4");
	mean(message, "infiniband.cm.rep.remotecommid", "0x01020304");
	mean(message, "infiniband.cm.rep.localqkey", "0x11223344");
	mean(message, "infiniband.cm.rep.localqpn", "0xabcdef");
	mean(message, "infiniband.cm.rep.localeecn", "0x010203");
	mean(message, "infiniband.cm.rep.startpsn", "0xfedcba");
	mean(message, "infiniband.cm.rep.respres", "12");
	mean(message, "infiniband.cm.rep.initdepth", "13");
	mean(message, "infiniband.cm.rep.tgtackdelay", "15");
	mean(message, "infiniband.cm.rep.failoveracc", "2");
	mean(message, "infiniband.cm.rep.e2eflowctrl", "1");
	mean(message, "infiniband.cm.rep.rnrretrcount", "5");
	mean(message, "infiniband.cm.rep.srq", "1");
	mean(message, "infiniband.cm.rep.localcaguid", "0x0002030405060708");
}

static void add_rej(void)
{
	struct vb_mad mad = {
		.kind = VB_MAD_REJ,
		COMMON,
		.rej = { .about = VB_MAD_ABOUT_REP,
			 .info_length = 8,
			 .reason = VB_MAD_STALE_CONNECTION },
	};
	struct meant_packet *message = add_named(&mad, true, "CM: ConnectReject");

	mean(message, "infiniband.cm.rej.localcommid", "0xa1b2c3d4");
	mean(message, "infiniband.cm.rej.remotecommid", "0x01020304");
	mean(message, "infiniband.cm.rej.msgrej", "1");
	mean(message, "infiniband.cm.rej.rejinfolen", "8");
	mean(message, "infiniband.cm.rej.reason", "10");
}

static void add_pair(enum vb_mad_kind kind, const char *name, const char *local, const char *remote)
{
	struct vb_mad mad = { .kind = kind, COMMON };
	struct meant_packet *message = add_named(&mad, true, name);

	mean(message, local, "0xa1b2c3d4");
	mean(message, remote, "0x01020304");
}

static void add_dreq(void)
{
	struct vb_mad mad = { .kind = VB_MAD_DREQ, COMMON, .dreq.remote_qpn = { 0x123456 } };
	struct meant_packet *message = add_named(&mad, true, "CM: DisconnectRequest");

	mean(message, "infiniband.cm.dreq.localcommid", "0xa1b2c3d4");
	mean(message, "infiniband.cm.dreq.remotecommid", "0x01020304");
	mean(message, "infiniband.cm.req.remoteqpneecn", "0x123456");
}

static void add_only_named(enum vb_mad_kind kind, const char *name)
{
	struct vb_mad mad = { .kind = kind, COMMON };

	add_named(&mad, true, name);
}

TEST(tshark_reads_the_answers_and_the_end)
{
	begin();
	add_rep();
	add_rej();
	add_pair(VB_MAD_RTU, "CM: ReadyToUse", "infiniband.cm.rtu.localcommid",
		 "infiniband.cm.rtu.remotecommid");
	add_dreq();
	add_pair(VB_MAD_DREP, "CM: DisconnectReply", "infiniband.cm.drsp.localcommid",
		 "infiniband.cm.drsp.remotecommid");
	meant_expect_tshark_agrees("");
}

TEST(tshark_knows_the_other_messages_by_name)
{
	begin();
	add_only_named(VB_MAD_MRA, "CM: MsgRcptAck");
	add_only_named(VB_MAD_SIDR_REQ, "CM: ServiceIDResReq");
	add_only_named(VB_MAD_SIDR_REP, "CM: ServiceIDResReqResp");
	add_only_named(VB_MAD_LAP, "CM: LoadAlternatePath");
	add_only_named(VB_MAD_APR, "CM: AlternatePathResponse");
	meant_expect_tshark_agrees("");
}
