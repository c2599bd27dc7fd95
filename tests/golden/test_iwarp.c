/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP as tshark reads it: a TCP stream with the set-up of MPA and each kind of segment, over IPv4
 * and IPv6, with CRC and without. tshark 4.0 knows revision 1 only: it takes the bit for enhanced
 * words for a reserved one, and shows the words as private data.
 */
#include "base/bytes.h"
#include "base/crc.h"
#include "harness.h"
#include "support_golden.h"
#include "support_meant.h"
#include "wire/flow.h"
#include "wire/mpa.h"
#include "wire/rdmap.h"

#include <stdlib.h>
#include <string.h>

#define TCP_SIZE 20
#define PORT 7174
#define FLAG_SYN 0x02
#define FLAG_PUSH 0x08
#define FLAG_ACK 0x10

enum side { INITIATOR, RESPONDER };

static struct {
	bool is_ipv4;
	bool has_crc;
	uint32_t next[2]; /* sequence number of each side */
	uint32_t fpdu_count;
} stream;

/* --- TCP -------------------------------------------------------------------------------------- */

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint32_t sum_of(const uint8_t *p, uint32_t length)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < length; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

static uint32_t store_ipv4(uint8_t *p, enum side from, uint32_t payload_length)
{
	memset(p, 0, VB_IPV4_SIZE);
	p[0] = 0x45;
	store16(p + 2, (uint16_t)(VB_IPV4_SIZE + payload_length));
	p[6] = 0x40; /* DF */
	p[8] = 64;
	p[9] = 6;
	store32(p + 12, 0xc0a80101 + from);
	store32(p + 16, 0xc0a80101 + !from);
	store16(p + 10, fold(sum_of(p, VB_IPV4_SIZE)));
	return VB_IPV4_SIZE;
}

static uint32_t store_ipv6(uint8_t *p, enum side from, uint32_t payload_length)
{
	memset(p, 0, VB_IPV6_SIZE);
	p[0] = 0x60;
	store16(p + 4, (uint16_t)payload_length);
	p[6] = 6;
	p[7] = 64;
	store32(p + 8, 0x20010db8);
	store32(p + 24, 0x20010db8);
	p[23] = (uint8_t)(1 + from);
	p[39] = (uint8_t)(1 + !from);
	return VB_IPV6_SIZE;
}

static struct meant_packet *add_segment(enum side from, uint8_t flags, const uint8_t *bytes,
					uint32_t length)
{
	uint8_t *ip = calloc(1, VB_IPV6_SIZE + TCP_SIZE + length);
	uint32_t tcp_length = TCP_SIZE + length, sum;
	uint32_t offset = stream.is_ipv4 ? store_ipv4(ip, from, tcp_length)
					 : store_ipv6(ip, from, tcp_length);
	uint8_t *tcp = ip + offset;
	struct meant_packet *packet;

	store16(tcp, from == INITIATOR ? 40000 : PORT);
	store16(tcp + 2, from == INITIATOR ? PORT : 40000);
	store32(tcp + 4, stream.next[from]);
	store32(tcp + 8, flags & FLAG_ACK ? stream.next[!from] : 0);
	tcp[12] = TCP_SIZE / 4 << 4;
	tcp[13] = flags;
	store16(tcp + 14, 0xffff);
	if (length)
		memcpy(tcp + TCP_SIZE, bytes, length);
	sum = sum_of(tcp, tcp_length) + 6 + tcp_length;
	sum += stream.is_ipv4 ? sum_of(ip + 12, 8) : sum_of(ip + 8, 32);
	store16(tcp + 16, fold(sum));
	stream.next[from] += length + !!(flags & FLAG_SYN);
	packet = meant_add(ip, offset + tcp_length);
	mean(packet, "tcp.checksum.status", "1");
	free(ip);
	return packet;
}

static void begin(bool is_ipv4, bool has_crc)
{
	if (!golden_has_tshark())
		SKIP("tshark is not installed");
	stream.is_ipv4 = is_ipv4;
	stream.has_crc = has_crc;
	stream.next[INITIATOR] = 1000;
	stream.next[RESPONDER] = 0xfffffff0; /* wraps */
	add_segment(INITIATOR, FLAG_SYN, NULL, 0);
	add_segment(RESPONDER, FLAG_SYN | FLAG_ACK, NULL, 0);
	add_segment(INITIATOR, FLAG_ACK, NULL, 0);
}

/* tshark takes the revision 2 for a fault, and SYNs have a note; nothing else may have one. */
static void expect_agreement(void)
{
	static const char options[] = "-o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE "
				      "--disable-protocol rpcordma --disable-protocol iser "
				      "--disable-protocol smb_direct --disable-protocol nvme-rdma";
	static const char faults[] = "_ws.malformed || (_ws.expert && !iwarp_mpa.req && "
				     "!iwarp_mpa.rep && tcp.flags.syn == 0)";

	meant_expect_tshark_agrees(options);
	EXPECT_EQ(meant_count_packets(options, faults), 0);
	EXPECT_EQ(meant_count_packets(options, "iwarp_mpa.fpdu"), stream.fpdu_count);
	EXPECT_EQ(meant_count_lines(options, "(Good CRC32)"),
		  stream.has_crc ? stream.fpdu_count : 0);
}

/* --- MPA -------------------------------------------------------------------------------------- */

static void add_frame(enum side from, const struct vb_mpa_frame *frame)
{
	uint8_t bytes[VB_MPA_FRAME_MAX];
	uint32_t length = vb_mpa_frame_store(bytes, frame);
	struct meant_packet *packet = add_segment(from, FLAG_PUSH | FLAG_ACK, bytes, length);

	mean_bytes(packet, from == INITIATOR ? "iwarp_mpa.key.req" : "iwarp_mpa.key.rep", bytes,
		   16);
	mean_number(packet, "iwarp_mpa.marker_flag", frame->wants_markers);
	mean_number(packet, "iwarp_mpa.crc_flag", frame->wants_crc);
	mean_number(packet, "iwarp_mpa.rej_flag", frame->is_rejected);
	mean_number(packet, "iwarp_mpa.res", frame->is_enhanced ? 0x10 : 0);
	mean_number(packet, "iwarp_mpa.rev", frame->revision);
	mean_number(packet, "iwarp_mpa.pdlength", length - VB_MPA_HEADER_SIZE);
	mean_bytes(packet, "iwarp_mpa.privatedata", bytes + VB_MPA_HEADER_SIZE,
		   length - VB_MPA_HEADER_SIZE);
}

static struct vb_mpa_frame frame_of(enum vb_mpa_kind kind)
{
	struct vb_mpa_frame frame = {
		.kind = kind,
		.revision = 2,
		.wants_crc = stream.has_crc,
		.is_enhanced = true,
		.ird = 0x1234,
		.ord = 0x2345,
		.private_length = 7,
		.private_data = "private",
	};

	return frame;
}

static void add_set_up(void)
{
	struct vb_mpa_frame request = frame_of(VB_MPA_REQUEST), reply = frame_of(VB_MPA_REPLY);

	request.is_peer_to_peer = reply.is_peer_to_peer = true;
	request.rtr = VB_MPA_RTR_SEND | VB_MPA_RTR_WRITE | VB_MPA_RTR_READ;
	reply.rtr = VB_MPA_RTR_WRITE;
	add_frame(INITIATOR, &request);
	add_frame(RESPONDER, &reply);
}

/* Adds a segment in an FPDU, in a TCP segment of its own. */
static struct meant_packet *add_fpdu(enum side from, const struct vb_rdmap *segment)
{
	uint8_t *fpdu = calloc(1, VB_MPA_LENGTH_SIZE + VB_RDMAP_HEADERS_MAX +
					  segment->payload_length + VB_MPA_TRAILER_MAX);
	uint8_t *ulpdu = fpdu + VB_MPA_LENGTH_SIZE;
	uint32_t headers = vb_rdmap_store_headers(ulpdu, segment), pad;
	uint32_t length = headers + segment->payload_length, size;
	uint32_t traits = vb_rdmap_traits((enum vb_rdmap_opcode)segment->ddp.opcode);
	struct meant_packet *packet;

	for (uint32_t i = headers; i < length; i++)
		ulpdu[i] = (uint8_t)(i * 3 + 0xa0);
	store16(fpdu, (uint16_t)length);
	vb_mpa_trailer_store(ulpdu + length, length, stream.has_crc,
			     vb_crc32c(0, fpdu, VB_MPA_LENGTH_SIZE + length));
	size = vb_mpa_fpdu_size(length);
	pad = vb_mpa_pad(length);
	packet = add_segment(from, FLAG_PUSH | FLAG_ACK, fpdu, size);
	mean_number(packet, "iwarp_mpa.ulpdulength", length);
	mean_bytes(packet, "iwarp_mpa.pad", ulpdu + length, pad);
	mean_number(packet, stream.has_crc ? "iwarp_mpa.crc_check" : "iwarp_mpa.crc",
		    load32(fpdu + size - VB_MPA_CRC_SIZE));
	stream.fpdu_count++;
	mean(packet, "iwarp_ddp.dv", "1");
	mean(packet, "iwarp_rdma.version", "1");
	mean_number(packet, "iwarp_rdma.opcode", segment->ddp.opcode);
	mean_number(packet, "iwarp_ddp.last_flag", segment->ddp.is_last);
	mean_number(packet, "iwarp_ddp.tagged_flag", !!(traits & VB_RDMAP_IS_TAGGED));
	if (traits & VB_RDMAP_IS_TAGGED) {
		mean_number(packet, "iwarp_ddp.stag", segment->ddp.stag);
		mean_number(packet, "iwarp_ddp.tagged_offset", segment->ddp.offset);
		mean(packet, "iwarp_ddp.qn", "");
	} else {
		mean_number(packet, "iwarp_ddp.qn",
			    vb_rdmap_queue((enum vb_rdmap_opcode)segment->ddp.opcode));
		mean_number(packet, "iwarp_ddp.msn", segment->ddp.msn);
		mean_number(packet, "iwarp_ddp.mo", segment->ddp.offset);
		mean(packet, "iwarp_ddp.stag", "");
	}
	if (traits & VB_RDMAP_HAS_INVALIDATE)
		mean_number(packet, "iwarp_rdma.inval_stag", segment->ddp.stag);
	free(fpdu);
	return packet;
}

/* --- the streams ------------------------------------------------------------------------------ */

static void add_sends(void)
{
	for (uint32_t opcode = VB_RDMAP_SEND; opcode <= VB_RDMAP_SEND_SE_INV; opcode++) {
		struct vb_rdmap segment = { .ddp = { .opcode = (uint8_t)opcode,
						     .stag = 0x01020304,
						     .msn = opcode - VB_RDMAP_SEND + 1u },
					    .payload_length = 100 };

		add_fpdu(INITIATOR, &segment);
		segment.ddp.is_last = true;
		segment.ddp.offset = 100;
		segment.payload_length = opcode; /* each pad once */
		add_fpdu(INITIATOR, &segment);
	}
}

static void add_writes(void)
{
	struct vb_rdmap segment = { .ddp = { .opcode = VB_RDMAP_WRITE,
					     .stag = 0xfedcba98,
					     .offset = 0x0123456789abcdef },
				    .payload_length = 1000 };

	add_fpdu(INITIATOR, &segment);
	segment.ddp.is_last = true;
	segment.ddp.offset += 1000;
	segment.payload_length = 0;
	add_fpdu(INITIATOR, &segment);
}

static struct vb_rdmap read_request(void)
{
	return (struct vb_rdmap){
		.ddp = { .opcode = VB_RDMAP_READ_REQUEST, .is_last = true, .msn = 1 },
		.read = { .sink_stag = 0x11111111,
			  .sink_offset = 0x2222222233333333,
			  .length = 17,
			  .source_stag = 0x44444444,
			  .source_offset = 0x5555555566666666 }
	};
}

static void add_read(void)
{
	struct vb_rdmap request = read_request();
	struct vb_rdmap response = { .ddp = { .opcode = VB_RDMAP_READ_RESPONSE,
					      .is_last = true,
					      .stag = request.read.sink_stag,
					      .offset = request.read.sink_offset },
				     .payload_length = 17 };
	struct meant_packet *packet = add_fpdu(INITIATOR, &request);

	mean_number(packet, "iwarp_rdma.sinkstag", request.read.sink_stag);
	mean_number(packet, "iwarp_rdma.sinkto", request.read.sink_offset);
	mean_number(packet, "iwarp_rdma.rdmardsz", request.read.length);
	mean_number(packet, "iwarp_rdma.srcstag", request.read.source_stag);
	mean_number(packet, "iwarp_rdma.srcto", request.read.source_offset);
	add_fpdu(RESPONDER, &response);
}

static struct meant_packet *add_terminate(const struct vb_rdmap_terminate *terminate)
{
	struct vb_rdmap segment = {
		.ddp = { .opcode = VB_RDMAP_TERMINATE, .is_last = true, .msn = 1 },
		.terminate = *terminate
	};
	struct meant_packet *packet = add_fpdu(RESPONDER, &segment);

	mean_number(packet, "iwarp_rdma.term_layer", terminate->error.layer);
	mean_number(packet, "iwarp_rdma.term_hdrct_m", terminate->has_length);
	mean_number(packet, "iwarp_rdma.hdrct_d", terminate->has_ddp);
	mean_number(packet, "iwarp_rdma.hdrct_r", terminate->has_read);
	mean(packet, "iwarp_rdma.term_rsvd", "0");
	return packet;
}

static void add_terminates(void)
{
	struct vb_rdmap request = read_request();
	struct vb_rdmap_terminate no_receive = { .error = { 1, 2, 2 },
						 .has_length = true,
						 .has_ddp = true,
						 .segment_length = 118,
						 .ddp = { 0x41, 0x43, [13] = 9 } };
	struct vb_rdmap_terminate bad_key = { .error = { 1, 1, 0 },
					      .has_length = true,
					      .has_ddp = true,
					      .segment_length = 22,
					      .ddp = { 0xc1, 0x40, 1, 2, 3, 4 } };
	struct vb_rdmap_terminate bad_read = { .error = { 0, 1, 2 },
					       .has_length = true,
					       .has_ddp = true,
					       .has_read = true,
					       .segment_length = 46,
					       .read = request.read };
	struct vb_rdmap_terminate bad_crc = { .error = { 2, 0, 2 } };
	uint8_t read[VB_RDMAP_HEADERS_MAX];
	struct meant_packet *packet = add_terminate(&no_receive);

	mean(packet, "iwarp_rdma.term_etype_ddp", "2");
	mean(packet, "iwarp_rdma.term_errcode_ddp_untagged", "2");
	mean(packet, "iwarp_rdma.term_ddp_seg_len", "0076");
	mean_bytes(packet, "iwarp_rdma.term_ddp_h", no_receive.ddp, 18);
	packet = add_terminate(&bad_key);
	mean(packet, "iwarp_rdma.term_etype_ddp", "1");
	mean(packet, "iwarp_rdma.term_errcode_ddp_tagged", "0");
	mean_bytes(packet, "iwarp_rdma.term_ddp_h", bad_key.ddp, 14);
	vb_rdmap_store_headers(read, &request);
	memcpy(bad_read.ddp, read, 18);
	packet = add_terminate(&bad_read);
	mean(packet, "iwarp_rdma.term_etype_rdma", "1");
	mean(packet, "iwarp_rdma.term_errcode_rdma", "2");
	/* tshark 4.0 takes the refused header for a tagged one here, and the rest for the READ. */
	mean_bytes(packet, "iwarp_rdma.term_ddp_h", read, 14);
	mean_bytes(packet, "iwarp_rdma.term_rdma_h", read + 14, 28);
	packet = add_terminate(&bad_crc);
	mean(packet, "iwarp_rdma.term_etype_llp", "0");
	mean(packet, "iwarp_rdma.term_errcode_llp", "2");
}

static void talk(bool is_ipv4, bool has_crc)
{
	begin(is_ipv4, has_crc);
	add_set_up();
	add_sends();
	add_writes();
	add_read();
	add_terminates();
	expect_agreement();
}

TEST(tshark_reads_a_stream_with_crc_over_ipv4)
{
	talk(true, true);
}

TEST(tshark_reads_a_stream_with_crc_over_ipv6)
{
	talk(false, true);
}

TEST(tshark_reads_a_stream_without_crc)
{
	talk(true, false);
}

TEST(tshark_reads_a_rejected_request)
{
	struct vb_mpa_frame request, reply;

	begin(true, false);
	request = frame_of(VB_MPA_REQUEST);
	request.revision = 1;
	request.is_enhanced = false;
	request.wants_markers = true;
	reply = request;
	reply.kind = VB_MPA_REPLY;
	reply.wants_markers = false;
	reply.is_rejected = true;
	add_frame(INITIATOR, &request);
	add_frame(RESPONDER, &reply);
	expect_agreement();
}
