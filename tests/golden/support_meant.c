/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs tshark over a capture file with one column for each field that any packet names. */
#include "support_meant.h"

#include "harness.h"
#include "wire/capture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELDS_MAX 72
#define COLUMNS_MAX 160
#define PACKETS_MAX 64
#define LINE_SIZE 32768

struct meant {
	char *field;
	char *value;
};

struct meant_packet {
	struct meant fields[FIELDS_MAX];
	uint32_t count;
	uint8_t *ip;
	uint32_t length;
};

static struct meant_packet packets[PACKETS_MAX];
static uint32_t packet_count;
static const char *columns[COLUMNS_MAX];
static uint32_t column_count;

struct meant_packet *meant_add(const uint8_t *ip, uint32_t length)
{
	struct meant_packet *packet = &packets[packet_count++];

	EXPECT(packet_count <= PACKETS_MAX);
	packet->ip = malloc(length);
	packet->length = length;
	memcpy(packet->ip, ip, length);
	return packet;
}

void mean(struct meant_packet *packet, const char *field, const char *value)
{
	EXPECT(packet->count < FIELDS_MAX);
	packet->fields[packet->count++] = (struct meant){ strdup(field), strdup(value) };
}

void mean_number(struct meant_packet *packet, const char *field, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	mean(packet, field, text);
}

void mean_bytes(struct meant_packet *packet, const char *field, const uint8_t *bytes,
		uint32_t length)
{
	char *text = calloc(length + 1, 2);

	for (uint32_t i = 0; i < length; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	mean(packet, field, text);
	free(text);
}

static void write_capture(char path[])
{
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	uint8_t header[VB_CAPTURE_HEADER_SIZE];

	EXPECT(file);
	fwrite(header, 1, vb_capture_store_header(header), file);
	for (uint32_t i = 0; i < packet_count; i++) {
		uint8_t *block = malloc(packets[i].length + VB_CAPTURE_BLOCK_OVERHEAD);

		fwrite(block, 1,
		       vb_capture_store_packet(block, i * 1000, packets[i].ip, packets[i].length),
		       file);
		free(block);
	}
	EXPECT_EQ(fclose(file), 0);
}

static uint32_t column_of(const char *field)
{
	uint32_t i = 0;

	while (i < column_count && strcmp(columns[i], field) != 0)
		i++;
	if (i == column_count) {
		EXPECT(column_count < COLUMNS_MAX);
		columns[column_count++] = field;
	}
	return i;
}

static bool is_same(const char *shown, const char *value)
{
	char *shown_end, *value_end;
	unsigned long long a = strtoull(shown, &shown_end, 0);
	unsigned long long b = strtoull(value, &value_end, 0);

	if (*shown && *value && !*shown_end && !*value_end && strlen(value) <= 18)
		return a == b;
	return strcmp(shown, value) == 0;
}

static void compare_row(uint32_t index, char *line)
{
	const struct meant_packet *packet = &packets[index];
	const char *row[COLUMNS_MAX] = { 0 };

	line[strcspn(line, "\n")] = 0;
	for (uint32_t i = 0; i < column_count; i++)
		row[i] = strsep(&line, "\t");
	for (uint32_t i = 0; i < packet->count; i++) {
		const struct meant *meant = &packet->fields[i];
		const char *shown = row[column_of(meant->field)];

		if (!shown || !is_same(shown, meant->value))
			FAIL("packet %u: %s is \"%s\", not \"%s\"", index + 1, meant->field,
			     shown ? shown : "", meant->value);
	}
}

static FILE *run_tshark(const char *path, const char *options, const char *output)
{
	char *line = malloc(LINE_SIZE);
	FILE *pipe;

	snprintf(line, LINE_SIZE, "HOME=/nonexistent tshark -n -Q %s -r %s %s 2>/dev/null", options,
		 path, output);
	pipe = popen(line, "r");
	EXPECT(pipe);
	free(line);
	return pipe;
}

void meant_expect_tshark_agrees(const char *options)
{
	char path[] = "/tmp/verbatim-golden-XXXXXX";
	static char line[LINE_SIZE];
	uint32_t row_count = 0;
	FILE *output;

	write_capture(path);
	for (uint32_t i = 0; i < packet_count; i++)
		for (uint32_t j = 0; j < packets[i].count; j++)
			column_of(packets[i].fields[j].field);
	strcpy(line, "-T fields");
	for (uint32_t i = 0; i < column_count; i++)
		sprintf(line + strlen(line), " -e %s", columns[i]);
	output = run_tshark(path, options, line);
	for (; fgets(line, sizeof(line), output); row_count++)
		compare_row(row_count, line);
	EXPECT_EQ(pclose(output), 0);
	EXPECT_EQ(row_count, packet_count);
	unlink(path);
}

static uint32_t count_lines(const char *options, const char *output, const char *text)
{
	char path[] = "/tmp/verbatim-golden-XXXXXX";
	char line[1024];
	uint32_t count = 0;
	FILE *pipe;

	write_capture(path);
	pipe = run_tshark(path, options, output);
	while (fgets(line, sizeof(line), pipe))
		count += strstr(line, text) != NULL;
	EXPECT_EQ(pclose(pipe), 0);
	unlink(path);
	return count;
}

uint32_t meant_count_packets(const char *options, const char *filter)
{
	char output[512];

	snprintf(output, sizeof(output), "-Y '%s' -T fields -e frame.number", filter);
	return count_lines(options, output, "\n");
}

uint32_t meant_count_lines(const char *options, const char *text)
{
	return count_lines(options, "-V", text);
}
