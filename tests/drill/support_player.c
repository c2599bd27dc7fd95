/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The player of scripts. A script is a file of lines, each of which is done before the next is
 * read. Whatever the peer sends and completes must be in the script: anything left over at its end
 * also fails it.
 */
#include "drill/support_player.h"

#include "drill/peer.h"
#include "drill/support_order.h"

#include "harness.h"

#include "base/crc.h"
#include "wire/icrc.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS 20000000000ull /* for what must arrive */
#define POLL_NS 1000000ull
#define NONE UINT64_MAX
#define LINE_MAX_LENGTH 512
#define EXPECTED_MAX 16
#define ENDING ".drill"

static const char *path;
static uint32_t line_number;
static struct packet_usual usual;
static bool is_open;
static bool is_held; /* the peer is held */
static bool has_reason; /* the script says how the peers differ */
static bool has_difference; /* the script has lines for one kind of peer */
static bool has_timeout; /* the QP has an ACK timeout */
static char expected_before[EXPECTED_MAX][LINE_MAX_LENGTH];
static uint32_t expected_count;
static struct made_packet last_sent; /* to the peer */
static uint64_t mark_ns; /* when the peer was last given something to do */

#define STOP(...) test_fail(path, (int)line_number, __VA_ARGS__)

/* --- packets ---------------------------------------------------------------------------------- */

static bool is_icrc_right(const struct made_packet *made, bool is_id_known)
{
	uint32_t crc = vb_icrc_begin(&made->flow, made->length, made->ip_id, made->bytes);
	uint16_t ip_id;

	crc = vb_crc32(crc, made->bytes + VB_BTH_SIZE, made->length - VB_BTH_SIZE - VB_ICRC_SIZE);
	crc ^= vb_icrc_load(made->bytes + made->length - VB_ICRC_SIZE);
	return !crc || (!is_id_known && vb_flow_is_ipv4(&made->flow) &&
			vb_icrc_solve_ip_id(crc, made->length, made->ip_id, &ip_id));
}

/* Describes a packet of the peer as a line; stops if it is none that may be sent at all. */
static struct vb_packet describe(const struct made_packet *made, bool is_id_known, char *text,
				 size_t size)
{
	struct vb_packet packet;
	int used;

	if (vb_packet_parse(made->bytes, made->length, made->length, &packet) != VB_PARSED)
		STOP("the peer sent %u bytes that are no packet", made->length);
	/* means nothing there: they are always answered */
	if (packet.traits & (VB_IS_READ | VB_IS_ATOMIC))
		packet.bth.ack_request = false;
	used = vb_packet_describe(&packet, text, (uint32_t)size);
	snprintf(text + used, size - (size_t)used, " pkey=0x%x migreq=%d", packet.bth.pkey,
		 packet.bth.migrated);
	if (!is_icrc_right(made, is_id_known))
		STOP("the peer sent \"%s\" with a wrong ICRC", text);
	if (packet.bth.destination.v != DRILL_QPN)
		STOP("the peer sent \"%s\" to QP 0x%x", text, packet.bth.destination.v);
	if (packet.traits & VB_HAS_DETH && packet.deth.source.v != usual.qpn.v)
		STOP("the peer sent \"%s\" as from QP 0x%x", text, packet.deth.source.v);
	if (!vb_gid_equal(&made->flow.source, &usual.destination))
		STOP("somebody else sent \"%s\"", text);
	return packet;
}

/*
 * The value of a word that belongs to the player and not to the packet, or NONE; removes the word
 * from the line.
 */
static uint64_t take_value(char *line, const char *name)
{
	uint64_t value = order_value(line, name, NONE);
	char start[32];
	char *word;

	snprintf(start, sizeof(start), " %s=", name);
	word = strstr(line, start);
	if (word) {
		const char *rest = word + 1 + strcspn(word + 1, " ");

		memmove(word, rest, strlen(rest) + 1);
	}
	return value;
}

static void check_bytes(const uint8_t *bytes, uint32_t length, bool is_pattern, uint32_t value)
{
	for (uint32_t i = 0; i < length; i++) {
		uint8_t right = is_pattern ? pattern_byte(value + i) : (uint8_t)value;

		if (bytes[i] != right)
			STOP("byte %u of %u is 0x%02x, expected 0x%02x", i, length, bytes[i],
			     right);
	}
}

static void play_send(char *words)
{
	packet_from_words(words, &usual, &last_sent);
	mark_ns = peer_now_ns();
	peer_send(&last_sent);
}

static void play_hold(char *words)
{
	(void)words;
	is_held = true;
	peer_hold();
}

static void play_release(char *words)
{
	(void)words;
	is_held = false;
	peer_release();
}

static void check_time(uint64_t least_us)
{
	uint64_t passed_us = (peer_now_ns() - mark_ns) / 1000;

	if (least_us != NONE && passed_us < least_us)
		STOP("the peer sent it after %" PRIu64 " us", passed_us);
}

/*
 * A peer on a wire whose QP has an ACK timeout repeats what is not answered in time, and this
 * machine may be slow to answer. Only there, what was expected before may come again.
 */
static bool is_late_repetition(const char *text)
{
	if (!has_timeout || peer_time_is_ours())
		return false;
	for (uint32_t i = 0; i < expected_count && i < EXPECTED_MAX; i++)
		if (strcmp(expected_before[i], text) == 0)
			return true;
	return false;
}

static void remember(const char *text)
{
	snprintf(expected_before[expected_count++ % EXPECTED_MAX], LINE_MAX_LENGTH, "%s", text);
}

static void play_receive(char *words)
{
	static struct made_packet made;
	uint64_t byte = take_value(words, "byte"), data = take_value(words, "data");
	uint64_t least_us = take_value(words, "not-before-us");
	char text[LINE_MAX_LENGTH];
	struct vb_packet packet;
	bool is_id_known;

	do {
		if (!peer_receive(&made, &is_id_known, PATIENCE_NS))
			STOP("the peer sent nothing, expected \"%s\"", words);
		packet = describe(&made, is_id_known, text, sizeof(text));
	} while (!words_match(text, words) && is_late_repetition(text));
	if (!words_match(text, words))
		STOP("the peer sent \"%s\"\n        expected      \"%s\"", text, words);
	check_time(least_us);
	if (byte != NONE || data != NONE)
		check_bytes(made.bytes + packet.header_length, packet.payload_length, data != NONE,
			    (uint32_t)(data != NONE ? data : byte));
	remember(text);
}

static void expect_silence(uint64_t ns)
{
	static struct made_packet made;
	char text[LINE_MAX_LENGTH];
	bool is_id_known;

	while (peer_receive(&made, &is_id_known, ns)) {
		describe(&made, is_id_known, text, sizeof(text));
		if (!is_late_repetition(text))
			STOP("the peer sent \"%s\"\n        expected      silence", text);
	}
}

static void play_silence(char *words)
{
	(void)words;
	expect_silence(peer_silence_ns());
}

/* --- orders ----------------------------------------------------------------------------------- */

static const char *give_order(const char *order)
{
	const char *answer = peer_order(order);

	if (strncmp(answer, "no: ", 4) == 0)
		STOP("the peer does not \"%s\": %s", order, answer + 4);
	return answer;
}

static void play_setup(char *words)
{
	char order[LINE_MAX_LENGTH];
	const char *made;

	if (is_open)
		STOP("setup comes first");
	snprintf(order, sizeof(order), "open %s", words);
	peer_open(&usual.source, &usual.destination);
	is_open = true;
	made = give_order(order);
	usual.source_port = VB_ROCE_PORT;
	usual.qpn.v = (uint32_t)order_value(made, "qpn", 0);
	usual.address = order_value(made, "address", 0);
	usual.rkey = (uint32_t)order_value(made, "rkey", 0);
	usual.qkey = order_attr(order).qkey;
	usual.source_qpn.v = DRILL_QPN;
	has_timeout = order_attr(order).timeout;
}

/* "post …", "store …", "reset" and "connect …" are orders as they are written. */
static void play_order(char *words)
{
	mark_ns = peer_now_ns();
	give_order(words);
}

/* Repeats the order until the answer differs from `other` or, without `other`, is `wanted`. */
static const char *await_answer(const char *order, const char *other, const char *wanted)
{
	uint64_t end_ns = peer_now_ns() + PATIENCE_NS;
	const char *answer = give_order(order);

	while ((other ? !strcmp(answer, other) : strcmp(answer, wanted) != 0) &&
	       peer_now_ns() < end_ns) {
		peer_wait(POLL_NS);
		answer = give_order(order);
	}
	return answer;
}

static void play_completion(char *words)
{
	const char *answer = await_answer("poll", "none", NULL);

	if (!words_match(answer, words))
		STOP("completion \"%s\"\n        expected   \"%s\"", answer, words);
}

static void expect_no_completion(void)
{
	const char *answer = give_order("poll");

	if (strcmp(answer, "none") != 0)
		STOP("completion \"%s\"\n        expected none", answer);
}

static void play_no(char *words)
{
	if (strcmp(words, "completion") != 0)
		STOP("no %s?", words);
	expect_no_completion();
}

static void play_state(char *words)
{
	const char *answer = await_answer("state", NULL, words);

	if (strcmp(answer, words) != 0)
		STOP("the QP is in %s, expected %s", answer, words);
}

/*
 * Checks the IP header of the last packet sent, as a UD QP puts it before the data: an IPv4 header
 * is in the second half of the 40 bytes. The sender's kernel chooses the flow label.
 */
static void check_header(const uint8_t bytes[VB_GRH_SIZE])
{
	bool is_ipv4 = vb_flow_is_ipv4(&last_sent.flow);
	uint8_t right[VB_GRH_SIZE];

	vb_flow_store_grh(right, &last_sent.flow, last_sent.length);
	for (uint32_t i = is_ipv4 ? VB_GRH_SIZE - VB_IPV4_SIZE : 0; i < VB_GRH_SIZE; i++)
		if (bytes[i] != right[i] && (is_ipv4 || !i || i > 3))
			STOP("byte %u of the IP header is 0x%02x, expected 0x%02x", i, bytes[i],
			     right[i]);
}

static void load(uint32_t offset, uint32_t length, uint8_t bytes[LOAD_MAX])
{
	char order[LINE_MAX_LENGTH];
	const char *answer;

	snprintf(order, sizeof(order), "load offset=%u len=%u", offset, length);
	answer = give_order(order);
	for (uint32_t i = 0; i < length; i++)
		sscanf(answer + 2 * i, "%2hhx", &bytes[i]);
}

/*
 * memory offset=0 len=8, and byte=0xab, data=0x4000 (the pattern there), word=7, "header" or
 * "unchanged"
 */
static void play_memory(char *words)
{
	bool is_header = order_has(words, "header");
	uint32_t offset = (uint32_t)order_value(words, "offset", 0);
	uint32_t length = (uint32_t)order_value(words, "len", is_header ? VB_GRH_SIZE : 8);
	uint64_t value, word = order_value(words, "word", 0);
	uint8_t bytes[LOAD_MAX];

	load(offset, length, bytes);
	memcpy(&value, bytes, sizeof(value));
	if (is_header)
		check_header(bytes);
	else if (order_has(words, "unchanged"))
		check_bytes(bytes, length, true, offset);
	else if (strstr(words, "byte="))
		check_bytes(bytes, length, false, (uint32_t)order_value(words, "byte", 0));
	else if (strstr(words, "data="))
		check_bytes(bytes, length, true, (uint32_t)order_value(words, "data", 0));
	else if (value != word)
		STOP("the word is 0x%" PRIx64 ", expected 0x%" PRIx64, value, word);
}

/* --- scripts ---------------------------------------------------------------------------------- */

static void play_differs(char *words)
{
	(void)words;
	has_reason = true;
}

static void play_skip(char *words)
{
	test_skip(path, (int)line_number, "%s", words);
}

/* The words that a line may begin with. Those that are whole orders keep their first word. */
static const struct {
	const char *name;
	void (*play)(char *words);
	bool is_order;
} verbs[] = {
	{ ">", play_send, false },
	{ "<", play_receive, false },
	{ "hold", play_hold, false },
	{ "release", play_release, false },
	{ "silence", play_silence, false },
	{ "setup", play_setup, false },
	{ "post", play_order, true },
	{ "store", play_order, true },
	{ "reset", play_order, true },
	{ "connect", play_order, true },
	{ "completion", play_completion, false },
	{ "no", play_no, false },
	{ "state", play_state, false },
	{ "memory", play_memory, false },
	{ "skip", play_skip, false },
};

static char *after_word(char *text)
{
	text += strcspn(text, " \t");
	return text + strspn(text, " \t");
}

static void play_verb(char *text)
{
	char nothing[] = "";

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (!order_begins(text, verbs[i].name))
			continue;
		if (!is_open && verbs[i].play != play_setup && verbs[i].play != play_skip)
			play_setup(nothing);
		verbs[i].play(verbs[i].is_order ? text : after_word(text));
		return;
	}
	STOP("what is \"%s\"?", text);
}

/* Whether a line is for this peer; *text moves behind the name of the peer. */
static bool is_for_us(char **text)
{
	static const char *const kinds[] = { "ours:", "kernel:" };

	for (size_t i = 0; i < 2; i++) {
		size_t length = strlen(kinds[i]);

		if (strncmp(*text, kinds[i], length) != 0)
			continue;
		has_difference = true;
		*text = after_word(*text);
		return strncmp(kinds[i], peer_kind(), length - 1) == 0;
	}
	return true;
}

static void play_line(char *line)
{
	char *text = line + strspn(line, " \t");
	size_t length = strcspn(text, "#\n");

	while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	text[length] = '\0';
	if (strncmp(text, "differs:", 8) == 0)
		play_differs(text);
	else if (*text && is_for_us(&text))
		play_verb(text);
}

/* The tests of this player use another folder. */
static const char *folder(void)
{
	const char *other = getenv("DRILL_SCRIPTS");

	return other ? other : VB_DRILL_SCRIPTS;
}

static void play_script(void)
{
	char line[LINE_MAX_LENGTH], file_name[LINE_MAX_LENGTH];
	FILE *file;

	snprintf(file_name, sizeof(file_name), "%s/%s%s", folder(), test_name(), ENDING);
	path = file_name;
	file = fopen(path, "r");
	EXPECT(file);
	while (fgets(line, sizeof(line), file)) {
		line_number++;
		play_line(line);
	}
	fclose(file);
	if (!is_open)
		STOP("a script without a line to play");
	if (has_reason != has_difference)
		STOP("lines for one peer and a line \"differs:\" belong together");
	if (is_held)
		STOP("what is held must be released");
	expect_silence(peer_silence_ns());
	expect_no_completion();
}

static int is_script(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), ending = strlen(ENDING);

	return length > ending && strcmp(entry->d_name + length - ending, ENDING) == 0;
}

void player_register_scripts(void)
{
	struct dirent **entries;
	int count = scandir(folder(), &entries, is_script, alphasort);

	for (int i = 0; i < count; i++) {
		struct test *test = calloc(1, sizeof(*test));
		char *name =
			strndup(entries[i]->d_name, strlen(entries[i]->d_name) - strlen(ENDING));

		EXPECT(test && name);
		test->name = name;
		test->run = play_script;
		test_register(test);
		free(entries[i]);
	}
	if (count > 0)
		free(entries);
}
