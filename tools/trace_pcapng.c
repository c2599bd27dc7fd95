/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace as Wireshark reads it: an interface for each adapter, and a comment at each packet. */
#include "trace.h"

#include "host/sys/clock.h"
#include "wire/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ETHERNET_SIZE 14u
#define HEADERS_MAX (ETHERNET_SIZE + VB_IPV6_SIZE + VB_UDP_SIZE)

static uint64_t realtime_offset(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * VB_SECOND_NS + (uint64_t)now.tv_nsec - vb_clock_now();
}

bool trace_pcapng_open(struct trace_pcapng *pcapng, const char *path, uint32_t packet_length_max)
{
	uint8_t block[VB_CAPTURE_BLOCK_MAX];

	pcapng->file = strcmp(path, "-") ? fopen(path, "wb") : stdout;
	if (!pcapng->file) {
		fprintf(stderr, "verbatim trace: cannot write '%s': %s\n", path, strerror(errno));
		return false;
	}
	pcapng->clock_ns = realtime_offset();
	pcapng->packet_length_max = packet_length_max;
	fwrite(block, 1, vb_capture_store_section(block, "verbatim trace"), pcapng->file);
	return true;
}

void trace_pcapng_add_source(struct trace_pcapng *pcapng, const struct trace_source *source)
{
	const struct vb_recording_memory *memory = source->reader.memory;
	uint8_t block[VB_CAPTURE_BLOCK_MAX];
	char description[256], name[64];

	(void)snprintf(name, sizeof(name), "%.*s", (int)sizeof(name) - 1, memory->device);
	(void)snprintf(description, sizeof(description),
		       "process %d (%s), device %s, adapter %" PRIu32, (int)source->pid,
		       source->program, name, memory->number);
	fwrite(block, 1,
	       vb_capture_store_interface(block, VB_CAPTURE_ETHERNET,
					  pcapng->packet_length_max == UINT32_MAX
						  ? 0
						  : pcapng->packet_length_max + HEADERS_MAX,
					  name, description),
	       pcapng->file);
}

/* Addresses of our own making: the last bytes are those of the GID. */
static void store_link_address(uint8_t p[6], const struct vb_gid *gid)
{
	bool is_multicast = vb_gid_is_multicast(gid);

	p[0] = is_multicast ? (vb_gid_is_ipv4(gid) ? 0x01 : 0x33) : 0x02;
	p[1] = is_multicast ? (vb_gid_is_ipv4(gid) ? 0x00 : 0x33) : 0x00;
	memcpy(p + 2, gid->raw + 12, 4);
	if (!is_multicast || !vb_gid_is_ipv4(gid))
		return;
	p[2] = 0x5e;
	p[3] &= 0x7f;
}

static uint32_t store_headers(uint8_t p[HEADERS_MAX], const struct trace_packet *packet)
{
	bool is_ipv4 = vb_flow_is_ipv4(&packet->flow);

	store_link_address(p, &packet->flow.destination);
	store_link_address(p + 6, &packet->flow.source);
	p[12] = is_ipv4 ? 0x08 : 0x86;
	p[13] = is_ipv4 ? 0x00 : 0xdd;
	return ETHERNET_SIZE + vb_flow_store_ip_udp(p + ETHERNET_SIZE, &packet->flow,
						    packet->length, packet->ip_id);
}

void trace_pcapng_add(struct trace_pcapng *pcapng, const struct trace_packet *packet)
{
	uint8_t *bytes = malloc(HEADERS_MAX + packet->captured);
	uint8_t *block = malloc(HEADERS_MAX + packet->captured + VB_CAPTURE_BLOCK_MAX);
	uint32_t headers;

	if (bytes && block) {
		headers = store_headers(bytes, packet);
		memcpy(bytes + headers, packet->bytes, packet->captured);
		fwrite(block, 1,
		       vb_capture_store_commented(
			       block,
			       &(struct vb_capture_packet){ .interface = packet->source->index,
							    .time_ns = packet->time_ns +
								       pcapng->clock_ns,
							    .data = bytes,
							    .captured = headers + packet->captured,
							    .length = headers + packet->length,
							    .is_sent = packet->is_sent,
							    .skipped = packet->skipped,
							    .comment = packet->comment }),
		       pcapng->file);
	}
	free(bytes);
	free(block);
}

bool trace_pcapng_flush(struct trace_pcapng *pcapng)
{
	return !fflush(pcapng->file) && !ferror(pcapng->file);
}

bool trace_pcapng_close(struct trace_pcapng *pcapng, const struct trace_sources *sources)
{
	uint8_t block[VB_CAPTURE_BLOCK_MAX];
	bool is_right;

	for (uint32_t i = 0; i < sources->count; i++)
		fwrite(block, 1,
		       vb_capture_store_statistics(
			       block, i, pcapng->clock_ns + vb_clock_now(),
			       atomic_load(&sources->all[i]->reader.memory->skipped)),
		       pcapng->file);
	is_right = trace_pcapng_flush(pcapng);
	if (pcapng->file != stdout)
		is_right &= !fclose(pcapng->file);
	if (!is_right)
		fprintf(stderr, "verbatim trace: not everything could be written: %s\n",
			strerror(errno));
	return is_right;
}
