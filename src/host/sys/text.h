/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of any length, which grows as it is written. */
#ifndef VB_HOST_SYS_TEXT_H
#define VB_HOST_SYS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* All zero at first. Its owner ends it with vb_text_fini(). */
struct vb_text {
	char *bytes; /* with a terminating null, or NULL */
	size_t length;
	size_t capacity;
	bool is_incomplete; /* there was no memory for the rest */
};

__attribute__((format(printf, 2, 3))) void vb_text_add(struct vb_text *text, const char *format,
						       ...);
/* As a string of JSON, in quotes. */
void vb_text_add_json(struct vb_text *text, const char *string);
void vb_text_fini(struct vb_text *text);

#endif
