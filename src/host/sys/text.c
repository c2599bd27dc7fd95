/* SPDX-License-Identifier: BSD-2-Clause */
/* The growth of texts. */
#include "host/sys/text.h"

#include "base/heap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CAPACITY_MIN 4096u

static bool ensure_room(struct vb_text *text, size_t length)
{
	size_t capacity = text->capacity ? text->capacity : CAPACITY_MIN;
	char *bytes;

	while (capacity < text->length + length + 1)
		capacity *= 2;
	if (capacity == text->capacity)
		return true;
	bytes = vb_heap_alloc(1, capacity);
	if (!bytes)
		return false;
	if (text->length)
		memcpy(bytes, text->bytes, text->length);
	vb_heap_free(text->bytes);
	text->bytes = bytes;
	text->capacity = capacity;
	return true;
}

void vb_text_add(struct vb_text *text, const char *format, ...)
{
	va_list arguments, again;
	int length;

	va_start(arguments, format);
	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (text->is_incomplete || length < 0 || !ensure_room(text, (size_t)length)) {
		text->is_incomplete = true;
	} else {
		vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
		text->length += (size_t)length;
	}
	va_end(again);
}

void vb_text_add_json(struct vb_text *text, const char *string)
{
	vb_text_add(text, "\"");
	for (; *string; string++) {
		unsigned char c = (unsigned char)*string;

		if (c < ' ' || c >= 0x7f) /* bytes that are no text keep their number */
			vb_text_add(text, "\\u%04x", c);
		else
			vb_text_add(text, c == '"' || c == '\\' ? "\\%c" : "%c", c);
	}
	vb_text_add(text, "\"");
}

void vb_text_fini(struct vb_text *text)
{
	vb_heap_free(text->bytes);
	*text = (struct vb_text){ 0 };
}
