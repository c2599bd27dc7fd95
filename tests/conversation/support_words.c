/* SPDX-License-Identifier: BSD-2-Clause */
/* Both lines are walked once; a word of the actual line that is missing may only be an optional one. */
#include "support_words.h"

#include <string.h>

static const char *const optional_words[] = { "va=",   "rkey=",	 "dma=", "credits=",
					      "qkey=", "srcqp=", "srqn=" };

static bool is_optional(const char *word)
{
	for (size_t i = 0; i < sizeof(optional_words) / sizeof(optional_words[0]); i++)
		if (strncmp(word, optional_words[i], strlen(optional_words[i])) == 0)
			return true;
	return false;
}

static const char *next_word(const char *word)
{
	word += strcspn(word, " ");
	return word + strspn(word, " ");
}

static bool is_same_word(const char *a, const char *b)
{
	size_t length = strcspn(a, " ");

	return length == strcspn(b, " ") && strncmp(a, b, length) == 0;
}

bool words_match(const char *actual, const char *expected)
{
	for (; *actual; actual = next_word(actual)) {
		if (is_same_word(actual, expected))
			expected = next_word(expected);
		else if (!is_optional(actual))
			return false;
	}
	return !*expected;
}
