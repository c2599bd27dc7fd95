/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing lines of words, where some words count only if they are expected. */
#ifndef VB_TESTS_CONVERSATION_SUPPORT_WORDS_H
#define VB_TESTS_CONVERSATION_SUPPORT_WORDS_H

#include <stdbool.h>

bool words_match(const char *actual, const char *expected);

#endif
