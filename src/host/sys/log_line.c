/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The composing of a line of the log. Whatever bytes a message has (names, paths and peers bring
 * them), the line stays one line, and JSON stays JSON. A line that is too long loses the end of its
 * message, never a part behind it.
 */
#include "host/sys/log_line_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PHASE_MAX 48
#define NAME_MAX_SHOWN 64 /* bytes of a program's or device's name */
#define TAIL_MAX 768 /* room for everything behind a message, at its longest */

/* Everything about a line that is not the message. */
struct parts {
	const char *level;
	char phase[PHASE_MAX]; /* "": none */
	const struct vb_log_about *about;
	uint32_t left_out;
};

static const char *const level_names[] = {
	[VB_LOG_ERROR] = "error",
	[VB_LOG_WARN] = "warn",
	[VB_LOG_INFO] = "info",
	[VB_LOG_DEBUG] = "debug",
};

/* --- bytes --- */

static void add_byte(struct vb_log_line *line, char byte)
{
	if (line->length < VB_LOG_LINE_MAX)
		line->bytes[line->length++] = byte;
}

static void add_text(struct vb_log_line *line, const char *text)
{
	for (; *text; text++)
		add_byte(line, *text);
}

__attribute__((format(printf, 2, 3))) static void add(struct vb_log_line *line, const char *format,
						      ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add_text(line, text);
}

static bool is_control(unsigned char byte)
{
	return byte < ' ' || byte == 0x7f;
}

/* --- key=value --- */

/* Control characters must not move the cursor or begin a line of their own. */
static char show(char byte)
{
	if (is_control((unsigned char)byte))
		return '?';
	return byte;
}

static void add_plain(struct vb_log_line *line, const char *text)
{
	for (; *text; text++)
		add_byte(line, show(*text));
}

static void add_pair(struct vb_log_line *line, const char *key, const char *value)
{
	bool is_quoted = !*value || value[strcspn(value, " \"=\\")];

	add(line, " %s=%s", key, is_quoted ? "\"" : "");
	for (int count = 0; *value && count < NAME_MAX_SHOWN; value++, count++) {
		if (*value == '"' || *value == '\\')
			add_byte(line, '\\');
		add_byte(line, show(*value));
	}
	add_text(line, is_quoted ? "\"" : "");
}

static void compose_text(struct vb_log_line *line, const struct parts *parts, const char *message)
{
	const struct vb_log_about *about = parts->about;

	add(line, "verbatim: %s: ", parts->level);
	add_plain(line, message);
	if (parts->left_out)
		add(line, " (and %u like this before)", parts->left_out);
	add(line, " pid=%ld", (long)getpid());
	add_pair(line, "program", program_invocation_short_name);
	if (*parts->phase)
		add_pair(line, "phase", parts->phase);
	if (about->device)
		add_pair(line, "device", about->device);
	if (about->qpn)
		add(line, " qp=0x%06x", about->qpn);
	if (about->error)
		add(line, " error=%s", strerrorname_np(about->error) ?: "?");
}

/* --- JSON --- */

/* The length of the UTF-8 character that `text` begins with, or 0 if it is none (RFC 3629). */
static size_t utf8_length(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t length = at[0] < 0x80	   ? 1
			: at[0] >> 5 == 6  ? 2
			: at[0] >> 4 == 14 ? 3
			: at[0] >> 3 == 30 ? 4
					   : 0;

	for (size_t i = 1; i < length; i++)
		if (at[i] >> 6 != 2)
			return 0;
	if ((length == 2 && at[0] < 0xc2) || /* longer than necessary */
	    (length == 3 && at[0] == 0xe0 && at[1] < 0xa0) ||
	    (length == 3 && at[0] == 0xed && at[1] >= 0xa0) || /* halves of UTF-16 */
	    (length == 4 && at[0] == 0xf0 && at[1] < 0x90) ||
	    (length == 4 && (at[0] > 0xf4 || (at[0] == 0xf4 && at[1] >= 0x90))))
		return 0;
	return length;
}

/*
 * At most `limit` bytes of the line. Bytes that are no UTF-8 become the characters of their number.
 */
static void add_string(struct vb_log_line *line, const char *text, size_t limit)
{
	size_t end = line->length + limit;

	add_byte(line, '"');
	while (*text && line->length + 8 <= end) { /* the longest character, and the quote */
		size_t length = utf8_length(text);

		if (*text == '"' || *text == '\\')
			add(line, "\\%c", *text);
		else if (!length || is_control((unsigned char)*text))
			add(line, "\\u%04x", (unsigned char)*text);
		else
			add(line, "%.*s", (int)length, text);
		text += length ? length : 1;
	}
	add_byte(line, '"');
}

static void add_member(struct vb_log_line *line, const char *key, const char *value)
{
	add(line, ",\"%s\":", key);
	add_string(line, value, 2 * NAME_MAX_SHOWN);
}

static void compose_json(struct vb_log_line *line, const struct parts *parts, const char *message)
{
	const struct vb_log_about *about = parts->about;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	add(line, "{\"time\":%lld.%06ld,\"level\":\"%s\",\"pid\":%ld", (long long)now.tv_sec,
	    now.tv_nsec / 1000, parts->level, (long)getpid());
	add_member(line, "program", program_invocation_short_name);
	if (*parts->phase)
		add_member(line, "phase", parts->phase);
	if (about->device)
		add_member(line, "device", about->device);
	if (about->qpn)
		add(line, ",\"qp\":%u", about->qpn);
	if (about->error)
		add(line, ",\"error\":\"%s\",\"errno\":%d", strerrorname_np(about->error) ?: "?",
		    about->error);
	if (parts->left_out)
		add(line, ",\"left_out\":%u", parts->left_out);
	add_text(line, ",\"message\":");
	add_string(line, message, VB_LOG_LINE_MAX - line->length - 2);
	add_byte(line, '}');
}

/* --- the line --- */

static void find_phase(char phase[PHASE_MAX], const struct vb_log_about *about, const char *format)
{
	size_t length = strcspn(format, ": %");

	if (about->phase)
		snprintf(phase, PHASE_MAX, "%s", about->phase);
	else if (format[length] == ':')
		snprintf(phase, PHASE_MAX, "%.*s", (int)length, format);
	else
		*phase = 0;
}

void vb_log_line_compose(struct vb_log_line *line, enum vb_log_format format_of_line,
			 enum vb_log_level level, const struct vb_log_about *about,
			 uint32_t left_out, const char *format, va_list args)
{
	struct parts parts = { .level = level_names[level], .about = about, .left_out = left_out };
	char message[VB_LOG_MESSAGE_MAX];

	_Static_assert(VB_LOG_MESSAGE_MAX + TAIL_MAX < VB_LOG_LINE_MAX, "text is never cut");
	if (vsnprintf(message, sizeof(message), format, args) < 0)
		*message = 0;
	find_phase(parts.phase, about, format);
	line->length = 0;
	switch (format_of_line) {
	case VB_LOG_TEXT:
		compose_text(line, &parts, message);
		break;
	case VB_LOG_JSON:
		compose_json(line, &parts, message);
		break;
	}
	add_byte(line, '\n');
}
