/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs tshark over a capture file with one column for each field below, and compares the rows. A
 * field that a packet does not carry must be empty. For opcodes that tshark does not know (XRC,
 * CNP, atomic write in version 4.0), the BTH is compared, and the bytes that tshark shows behind
 * it.
 */
#include "support_golden.h"

#include "harness.h"
#include "wire/capture.h"
#include "wire/icrc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEADERS_MAX (VB_IPV6_SIZE + VB_UDP_SIZE)
#define ROUTE_SIZE 8 /* bytes of ones in front of what the ICRC covers */
#define LINE_SIZE 32768
#define TIME_STEP_NS 1500000123ull

/* Payload dissectors that guess, and would misinterpret our test patterns. */
#define NO_GUESSING                                              \
	"--disable-protocol rpcordma --disable-protocol iser "   \
	"--disable-protocol smb_direct --disable-protocol lnet " \
	"--disable-protocol nvme-rdma --disable-protocol fcoib " \
	"--disable-protocol infiniband_sdp "                     \
	"--disable-protocol infiniband.eoib --disable-protocol smc"

#define TSHARK                                                      \
	"HOME=/nonexistent tshark -n -Q -o ip.check_checksum:TRUE " \
	"-o udp.ignore_ipv6_zero_checksum:TRUE " NO_GUESSING

enum field {
	FIELD_TIME,
	FIELD_IPV4_SOURCE,
	FIELD_IPV4_DESTINATION,
	FIELD_IPV4_ID,
	FIELD_IPV4_TOS,
	FIELD_IPV4_TTL,
	FIELD_IPV4_DONT_FRAGMENT,
	FIELD_IPV4_CHECKSUM,
	FIELD_IPV6_SOURCE,
	FIELD_IPV6_DESTINATION,
	FIELD_IPV6_CLASS,
	FIELD_IPV6_LABEL,
	FIELD_IPV6_HOPS,
	FIELD_SOURCE_PORT,
	FIELD_DESTINATION_PORT,
	FIELD_UDP_LENGTH,
	FIELD_OPCODE,
	FIELD_SOLICITED,
	FIELD_MIGRATED,
	FIELD_PAD,
	FIELD_VERSION,
	FIELD_PKEY,
	FIELD_QPN,
	FIELD_ACK_REQUEST,
	FIELD_PSN,
	FIELD_QKEY,
	FIELD_SOURCE_QPN,
	FIELD_ADDRESS,
	FIELD_RKEY,
	FIELD_DMA_LENGTH,
	FIELD_SWAP_OR_ADD,
	FIELD_COMPARE,
	FIELD_SYNDROME,
	FIELD_CREDIT_CODE,
	FIELD_TIMER_CODE,
	FIELD_NAK_CODE,
	FIELD_MSN,
	FIELD_ATOMIC_RESULT,
	FIELD_IMM,
	FIELD_INVALIDATE_KEY,
	FIELD_PAYLOAD,
	FIELD_ICRC,
	FIELD_UNKNOWN,
	FIELD_COUNT,
};

static const char *const field_names[FIELD_COUNT] = {
	[FIELD_TIME] = "frame.time_epoch",
	[FIELD_IPV4_SOURCE] = "ip.src",
	[FIELD_IPV4_DESTINATION] = "ip.dst",
	[FIELD_IPV4_ID] = "ip.id",
	[FIELD_IPV4_TOS] = "ip.dsfield",
	[FIELD_IPV4_TTL] = "ip.ttl",
	[FIELD_IPV4_DONT_FRAGMENT] = "ip.flags.df",
	[FIELD_IPV4_CHECKSUM] = "ip.checksum.status",
	[FIELD_IPV6_SOURCE] = "ipv6.src",
	[FIELD_IPV6_DESTINATION] = "ipv6.dst",
	[FIELD_IPV6_CLASS] = "ipv6.tclass",
	[FIELD_IPV6_LABEL] = "ipv6.flow",
	[FIELD_IPV6_HOPS] = "ipv6.hlim",
	[FIELD_SOURCE_PORT] = "udp.srcport",
	[FIELD_DESTINATION_PORT] = "udp.dstport",
	[FIELD_UDP_LENGTH] = "udp.length",
	[FIELD_OPCODE] = "infiniband.bth.opcode",
	[FIELD_SOLICITED] = "infiniband.bth.se",
	[FIELD_MIGRATED] = "infiniband.bth.m",
	[FIELD_PAD] = "infiniband.bth.padcnt",
	[FIELD_VERSION] = "infiniband.bth.tver",
	[FIELD_PKEY] = "infiniband.bth.p_key",
	[FIELD_QPN] = "infiniband.bth.destqp",
	[FIELD_ACK_REQUEST] = "infiniband.bth.a",
	[FIELD_PSN] = "infiniband.bth.psn",
	[FIELD_QKEY] = "infiniband.deth.q_key",
	[FIELD_SOURCE_QPN] = "infiniband.deth.srcqp",
	[FIELD_ADDRESS] = "infiniband.reth.va",
	[FIELD_RKEY] = "infiniband.reth.r_key",
	[FIELD_DMA_LENGTH] = "infiniband.reth.dmalen",
	[FIELD_SWAP_OR_ADD] = "infiniband.atomiceth.swapdt",
	[FIELD_COMPARE] = "infiniband.atomiceth.cmpdt",
	[FIELD_SYNDROME] = "infiniband.aeth.syndrome",
	[FIELD_CREDIT_CODE] = "infiniband.aeth.syndrome.credit_count",
	[FIELD_TIMER_CODE] = "infiniband.aeth.syndrome.timer",
	[FIELD_NAK_CODE] = "infiniband.aeth.syndrome.error_code",
	[FIELD_MSN] = "infiniband.aeth.msn",
	[FIELD_ATOMIC_RESULT] = "infiniband.atomicacketh.origremdt",
	[FIELD_IMM] = "infiniband.immdt",
	[FIELD_INVALIDATE_KEY] = "infiniband.ieth",
	[FIELD_PAYLOAD] = "data.data",
	[FIELD_ICRC] = "infiniband.invariant.crc",
	[FIELD_UNKNOWN] = "infiniband.vendor",
};

struct entry {
	struct vb_flow flow;
	uint16_t ip_id;
	struct vb_packet meant;
	uint8_t *bytes; /* the IP packet */
	uint32_t length;
	uint32_t bth_offset;
};

struct golden {
	char path[64];
	FILE *file;
	struct entry *entries;
	uint32_t count;
	char disagreement[1024];
};

/* What a column must contain: nothing, a number in any notation, or this text. */
struct expectation {
	enum { EXPECT_NOTHING, EXPECT_NUMBER, EXPECT_TEXT } kind;
	uint64_t number;
	char *text; /* owned */
};

bool golden_has_tshark(void)
{
	return system("command -v tshark >/dev/null 2>&1") == 0;
}

struct golden *golden_create(void)
{
	struct golden *golden = calloc(1, sizeof(*golden));
	uint8_t header[VB_CAPTURE_HEADER_SIZE];
	int fd;

	EXPECT(golden);
	strcpy(golden->path, "/tmp/verbatim-golden-XXXXXX.pcapng");
	fd = mkstemps(golden->path, 7);
	EXPECT(fd >= 0);
	golden->file = fdopen(fd, "w");
	EXPECT(golden->file);
	fwrite(header, 1, vb_capture_store_header(header), golden->file);
	return golden;
}

void golden_destroy(struct golden *golden)
{
	fclose(golden->file);
	unlink(golden->path);
	for (uint32_t i = 0; i < golden->count; i++)
		free(golden->entries[i].bytes);
	free(golden->entries);
	free(golden);
}

void golden_add(struct golden *golden, const struct vb_flow *flow, uint16_t ip_id,
		const struct vb_packet *meant, const uint8_t *bytes, uint32_t length)
{
	struct entry entry = { .flow = *flow, .ip_id = ip_id, .meant = *meant };
	uint8_t *block = malloc(HEADERS_MAX + length + VB_CAPTURE_BLOCK_OVERHEAD);

	EXPECT(length >= VB_BTH_SIZE + VB_ICRC_SIZE);
	entry.bytes = malloc(HEADERS_MAX + length);
	entry.bth_offset = vb_flow_store_ip_udp(entry.bytes, flow, length, ip_id);
	memcpy(entry.bytes + entry.bth_offset, bytes, length);
	entry.length = entry.bth_offset + length;
	fwrite(block, 1,
	       vb_capture_store_packet(block, TIME_STEP_NS * golden->count, entry.bytes,
				       entry.length),
	       golden->file);
	free(block);
	golden->entries = realloc(golden->entries, (golden->count + 1) * sizeof(entry));
	golden->entries[golden->count++] = entry;
}

/* --- the ICRC, over the captured bytes -------------------------------------------------------- */

static void mask_bytes(uint8_t *bytes, uint32_t offset, uint32_t length)
{
	memset(bytes + offset, 0xff, length);
}

static void mask_packet(uint8_t *ip, uint32_t bth_offset)
{
	if (ip[0] >> 4 == 4) {
		mask_bytes(ip, 1, 1); /* TOS */
		mask_bytes(ip, 8, 1); /* TTL */
		mask_bytes(ip, 10, 2); /* checksum */
	} else {
		ip[0] |= 0x0f; /* traffic class, flow label */
		mask_bytes(ip, 1, 3);
		mask_bytes(ip, 7, 1); /* hop limit */
	}
	mask_bytes(ip, bth_offset - 2, 2); /* UDP checksum */
	mask_bytes(ip, bth_offset + 4, 1); /* FECN, BECN, reserved */
}

static uint32_t icrc_bit_by_bit(const struct entry *entry)
{
	uint32_t length = ROUTE_SIZE + entry->length - VB_ICRC_SIZE;
	uint8_t *covered = malloc(length);
	uint32_t crc = 0xffffffff;

	memset(covered, 0xff, ROUTE_SIZE);
	memcpy(covered + ROUTE_SIZE, entry->bytes, length - ROUTE_SIZE);
	mask_packet(covered + ROUTE_SIZE, entry->bth_offset);
	for (uint32_t i = 0; i < length * 8; i++) {
		uint32_t bit = (crc ^ covered[i / 8] >> i % 8) & 1;

		crc = crc >> 1 ^ (bit ? 0xedb88320 : 0);
	}
	free(covered);
	return ~crc;
}

/* --- what the columns must contain ------------------------------------------------------------ */

static void expect_number(struct expectation *expectations, enum field field, uint64_t number)
{
	expectations[field].kind = EXPECT_NUMBER;
	expectations[field].number = number;
}

static void expect_text(struct expectation *expectations, enum field field, const char *text)
{
	expectations[field].kind = EXPECT_TEXT;
	expectations[field].text = strdup(text);
}

static void expect_bytes(struct expectation *expectations, enum field field, const uint8_t *bytes,
			 uint32_t length)
{
	char *text = calloc(length + 1, 2);

	for (uint32_t i = 0; i < length; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	expectations[field].kind = EXPECT_TEXT;
	expectations[field].text = text;
}

static void expect_gid(struct expectation *expectations, enum field field, const struct vb_gid *gid)
{
	char text[48];

	vb_gid_describe(gid, text);
	expect_text(expectations, field, text);
}

static void expect_flow(struct expectation *expectations, const struct entry *entry)
{
	const struct vb_flow *flow = &entry->flow;

	if (vb_flow_is_ipv4(flow)) {
		expect_gid(expectations, FIELD_IPV4_SOURCE, &flow->source);
		expect_gid(expectations, FIELD_IPV4_DESTINATION, &flow->destination);
		expect_number(expectations, FIELD_IPV4_ID, entry->ip_id);
		expect_number(expectations, FIELD_IPV4_TOS, flow->traffic_class);
		expect_number(expectations, FIELD_IPV4_TTL, flow->hop_limit);
		expect_number(expectations, FIELD_IPV4_DONT_FRAGMENT, 1);
		expect_number(expectations, FIELD_IPV4_CHECKSUM, 1); /* good */
	} else {
		expect_gid(expectations, FIELD_IPV6_SOURCE, &flow->source);
		expect_gid(expectations, FIELD_IPV6_DESTINATION, &flow->destination);
		expect_number(expectations, FIELD_IPV6_CLASS, flow->traffic_class);
		expect_number(expectations, FIELD_IPV6_LABEL, flow->flow_label);
		expect_number(expectations, FIELD_IPV6_HOPS, flow->hop_limit);
	}
	expect_number(expectations, FIELD_SOURCE_PORT, flow->source_port);
	expect_number(expectations, FIELD_DESTINATION_PORT, VB_ROCE_PORT);
	expect_number(expectations, FIELD_UDP_LENGTH,
		      VB_UDP_SIZE + entry->length - entry->bth_offset);
}

static void expect_bth(struct expectation *expectations, const struct vb_bth *bth)
{
	expect_number(expectations, FIELD_OPCODE, bth->opcode);
	expect_number(expectations, FIELD_SOLICITED, bth->solicited);
	expect_number(expectations, FIELD_MIGRATED, bth->migrated);
	expect_number(expectations, FIELD_PAD, bth->pad);
	expect_number(expectations, FIELD_VERSION, bth->version);
	expect_number(expectations, FIELD_PKEY, bth->pkey);
	expect_number(expectations, FIELD_QPN, bth->destination.v);
	expect_number(expectations, FIELD_ACK_REQUEST, bth->ack_request);
	expect_number(expectations, FIELD_PSN, bth->psn.v);
}

static void expect_aeth(struct expectation *expectations, const struct vb_aeth *aeth)
{
	static const enum field code_fields[4] = { FIELD_CREDIT_CODE, FIELD_TIMER_CODE,
						   FIELD_COUNT /* reserved */, FIELD_NAK_CODE };
	enum field code_field = code_fields[aeth->syndrome >> 5 & 3];

	expect_number(expectations, FIELD_SYNDROME, aeth->syndrome);
	expect_number(expectations, FIELD_MSN, aeth->msn);
	if (code_field != FIELD_COUNT)
		expect_number(expectations, code_field, aeth->syndrome & 0x1f);
}

static void expect_extensions(struct expectation *expectations, const struct vb_packet *meant)
{
	uint32_t traits = vb_opcode_traits(meant->bth.opcode);
	uint8_t word[4];

	if (traits & VB_HAS_DETH) {
		expect_number(expectations, FIELD_QKEY, meant->deth.qkey);
		expect_number(expectations, FIELD_SOURCE_QPN, meant->deth.source.v);
	}
	if (traits & VB_HAS_RETH) {
		expect_number(expectations, FIELD_ADDRESS, meant->reth.address);
		expect_number(expectations, FIELD_RKEY, meant->reth.rkey);
		expect_number(expectations, FIELD_DMA_LENGTH, meant->reth.length);
	}
	if (traits & VB_HAS_ATOMICETH) {
		expect_number(expectations, FIELD_ADDRESS, meant->atomic.address);
		expect_number(expectations, FIELD_RKEY, meant->atomic.rkey);
		expect_number(expectations, FIELD_SWAP_OR_ADD, meant->atomic.swap_or_add);
		expect_number(expectations, FIELD_COMPARE, meant->atomic.compare);
	}
	if (traits & VB_HAS_AETH)
		expect_aeth(expectations, &meant->aeth);
	if (traits & VB_HAS_ATOMICACKETH)
		expect_number(expectations, FIELD_ATOMIC_RESULT, meant->atomic_result);
	if (traits & VB_HAS_IMM) {
		store32(word, meant->imm);
		expect_bytes(expectations, FIELD_IMM, word, 4);
	}
	if (traits & VB_HAS_IETH) {
		store32(word, meant->invalidate_key);
		expect_bytes(expectations, FIELD_INVALIDATE_KEY, word, 4);
	}
}

static void expect_packet(struct expectation *expectations, const struct entry *entry,
			  uint32_t index, const char *unknown)
{
	uint8_t opcode = entry->meant.bth.opcode;
	const uint8_t *bth = entry->bytes + entry->bth_offset;
	uint32_t padded_length;
	char time[32];

	snprintf(time, sizeof(time), "%llu.%09llu", TIME_STEP_NS * index / 1000000000,
		 TIME_STEP_NS * index % 1000000000);
	expect_text(expectations, FIELD_TIME, time);
	expect_flow(expectations, entry);
	expect_bth(expectations, &entry->meant.bth);
	if (*unknown && (vb_opcode_service(opcode) == VB_SERVICE_XRC || opcode == VB_OPCODE_CNP ||
			 vb_opcode_traits(opcode) & VB_IS_ATOMIC_WRITE)) {
		expect_bytes(expectations, FIELD_UNKNOWN, bth + VB_BTH_SIZE,
			     (uint32_t)strlen(unknown) / 2);
		return;
	}
	expect_extensions(expectations, &entry->meant);
	padded_length = entry->meant.payload_length + entry->meant.bth.pad;
	if (padded_length) /* tshark shows the pad as part of the payload */
		expect_bytes(expectations, FIELD_PAYLOAD, bth + vb_opcode_header_length(opcode),
			     padded_length);
	expect_number(expectations, FIELD_ICRC,
		      load32(entry->bytes + entry->length - VB_ICRC_SIZE));
}

/* --- tshark ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool disagree(struct golden *golden,
							   const char *format, ...)
{
	int length =
		snprintf(golden->disagreement, sizeof(golden->disagreement), "%s: ", golden->path);
	va_list args;

	va_start(args, format);
	vsnprintf(golden->disagreement + length, sizeof(golden->disagreement) - (size_t)length,
		  format, args);
	va_end(args);
	return false;
}

static bool says(const char *column, const struct expectation *expectation)
{
	char *end;

	switch (expectation->kind) {
	case EXPECT_NOTHING:
		return !*column;
	case EXPECT_TEXT:
		return strcmp(column, expectation->text) == 0;
	case EXPECT_NUMBER:
		break;
	}
	if (strcmp(column, "True") == 0 || strcmp(column, "False") == 0)
		return expectation->number == (column[0] == 'T'); /* newer versions */
	return *column && strtoull(column, &end, 0) == expectation->number && !*end;
}

static bool compare_row(struct golden *golden, uint32_t index, char *line)
{
	struct expectation expectations[FIELD_COUNT] = { 0 };
	const char *columns[FIELD_COUNT];
	bool agree = true;

	line[strcspn(line, "\n")] = 0;
	for (int i = 0; i < FIELD_COUNT; i++) {
		columns[i] = strsep(&line, "\t");
		if (!columns[i])
			return disagree(golden, "packet %u: a row of %d columns", index + 1, i);
	}
	expect_packet(expectations, &golden->entries[index], index, columns[FIELD_UNKNOWN]);
	for (int i = 0; i < FIELD_COUNT && agree; i++)
		if (!says(columns[i], &expectations[i]))
			agree = disagree(golden, "packet %u: %s is \"%.400s\", not %s 0x%" PRIx64,
					 index + 1, field_names[i], columns[i],
					 expectations[i].text ? expectations[i].text : "",
					 expectations[i].number);
	for (int i = 0; i < FIELD_COUNT; i++)
		free(expectations[i].text);
	return agree;
}

static bool check_fields(struct golden *golden)
{
	char *line = malloc(LINE_SIZE);
	uint32_t row_count = 0;
	bool agree = true;
	FILE *output;
	int status;

	snprintf(line, LINE_SIZE, TSHARK " -r %s -T fields -E occurrence=f", golden->path);
	for (int i = 0; i < FIELD_COUNT; i++)
		sprintf(line + strlen(line), " -e %s", field_names[i]);
	strcat(line, " 2>/dev/null");
	output = popen(line, "r");
	EXPECT(output);
	for (; fgets(line, LINE_SIZE, output); row_count++)
		if (agree && row_count < golden->count)
			agree = compare_row(golden, row_count, line);
	status = pclose(output);
	free(line);
	if (agree && status != 0)
		agree = disagree(golden, "tshark: exit status %d", WEXITSTATUS(status));
	if (agree && row_count != golden->count)
		agree = disagree(golden, "tshark sees %u packets of %u", row_count, golden->count);
	return agree;
}

static bool check_forms(struct golden *golden)
{
	bool agree = true;
	char line[1024];
	FILE *output;

	snprintf(line, sizeof(line),
		 TSHARK " -r %s -Y '_ws.malformed || _ws.expert' -T fields -e frame.number "
			"-e _ws.malformed -e _ws.expert.message 2>/dev/null",
		 golden->path);
	output = popen(line, "r");
	EXPECT(output);
	while (fgets(line, sizeof(line), output))
		if (agree)
			agree = disagree(golden, "malformed: packet %.900s", line);
	pclose(output);
	return agree;
}

static bool check_icrcs(struct golden *golden)
{
	for (uint32_t i = 0; i < golden->count; i++) {
		struct entry *entry = &golden->entries[i];
		uint32_t icrc = vb_icrc_load(entry->bytes + entry->length - VB_ICRC_SIZE);

		if (icrc != icrc_bit_by_bit(entry))
			return disagree(golden, "packet %u: the ICRC is 0x%08x, not 0x%08x", i + 1,
					icrc, icrc_bit_by_bit(entry));
	}
	return true;
}

const char *golden_disagreement(struct golden *golden)
{
	EXPECT_EQ(fflush(golden->file), 0);
	if (check_forms(golden) && check_fields(golden) && check_icrcs(golden))
		return NULL;
	return golden->disagreement;
}
