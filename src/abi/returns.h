/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The return values of verbs that fail. The manual pages mix three conventions: the errno number
 * itself, -1 with errno, NULL with errno. Inside src/abi a function returns 0 or an errno number;
 * these helpers turn that into what the verb promises. No other file uses errno.
 */
#ifndef VB_ABI_RETURNS_H
#define VB_ABI_RETURNS_H

#include "base/err.h"
#include <errno.h>
#include <stddef.h>

/* The errno number for an error of the layers below. */
static inline int vb_abi_errno(vb_err err)
{
	switch (err) {
	case VB_OK:
		return 0;
	case VB_ENOMEM:
		return ENOMEM;
	case VB_EINVAL:
		return EINVAL;
	case VB_EBUSY:
		return EBUSY;
	case VB_ENOSPC:
		return ENOSPC;
	case VB_EOPNOTSUPP:
		return EOPNOTSUPP;
	case VB_EFAULT:
		return EFAULT;
	case VB_EMFILE:
		return EMFILE;
	case VB_EFBIG:
		return EFBIG;
	case VB_EAGAIN:
		return EAGAIN;
	}
	return EINVAL;
}

/*
 * The number is the result. errno is also set, because programs print it although the manual does
 * not promise it.
 */
static inline int vb_abi_return_errno(int error)
{
	if (error)
		errno = error;
	return error;
}

static inline int vb_abi_return_minus_one(int error)
{
	if (!error)
		return 0;
	errno = error;
	return -1;
}

/*
 * Logs the process limit that may have caused the error. Only this function knows all limits that
 * can run out.
 */
void vb_abi_log_limit(int error);

static inline void *vb_abi_return_null(int error)
{
	vb_abi_log_limit(error);
	errno = error;
	return NULL;
}

#endif
