/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the connection manager from arbitrary bytes: a message that was parsed and stored is
 * the same bytes when it is parsed and stored again; describing never writes beyond its buffer;
 * addresses in private data also survive. The first byte is the size of the text. If the second is
 * odd, the message gets a valid header. The rest is the message.
 */
#include "fuzz.h"
#include "support_input.h"

#include "base/bytes.h"
#include "wire/mad.h"
#include "wire/service.h"

#include <string.h>

enum { TEXT_MAX = 512 };

static void describe(const struct vb_mad *mad, uint32_t size)
{
	char *text = malloc(size ? size : 1);
	int length = vb_mad_describe(mad, text, size);

	REQUIRE(length > 0 && length < TEXT_MAX);
	REQUIRE(!size || strlen(text) == ((uint32_t)length < size ? (uint32_t)length : size - 1));
	free(text);
}

static void fuzz_service(const uint8_t *private_data)
{
	struct vb_service_ip ip, again;
	uint8_t stored[VB_SERVICE_IP_SIZE];

	if (!vb_service_ip_parse(private_data, &ip))
		return;
	vb_service_ip_store(stored, &ip);
	REQUIRE(vb_service_ip_parse(stored, &again));
	REQUIRE(again.source_port == ip.source_port);
	REQUIRE(vb_gid_equal(&again.source, &ip.source));
	REQUIRE(vb_gid_equal(&again.destination, &ip.destination));
}

static void make_header(uint8_t *bytes)
{
	static const uint8_t header[4] = { 1, 7, 2, 3 };

	memcpy(bytes, header, sizeof(header));
	store16(bytes + 16, (uint16_t)(VB_MAD_REQ + bytes[17] % VB_MAD_KIND_COUNT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	uint32_t text_size = input_8(&input);
	bool is_right = input_bool(&input);
	uint8_t bytes[VB_MAD_SIZE] = { 0 }, once[VB_MAD_SIZE], twice[VB_MAD_SIZE];
	uint32_t length = (uint32_t)(input.size < VB_MAD_SIZE ? input.size : VB_MAD_SIZE);
	struct vb_mad mad;

	memcpy(bytes, input.data, length);
	if (is_right) {
		make_header(bytes);
		length = VB_MAD_SIZE;
	}
	if (vb_mad_parse(bytes, length, &mad) != VB_MAD_PARSED) {
		REQUIRE(!is_right);
		return 0;
	}
	vb_mad_store(once, &mad);
	REQUIRE(vb_mad_parse(once, VB_MAD_SIZE, &mad) == VB_MAD_PARSED);
	vb_mad_store(twice, &mad);
	REQUIRE(!memcmp(once, twice, VB_MAD_SIZE));
	describe(&mad, text_size);
	fuzz_service(mad.private_data);
	return 0;
}
