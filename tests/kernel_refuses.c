/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of seccomp: each looks at the number of a call, and perhaps at its third argument. */
#include "kernel_refuses.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(error) \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)(error)&SECCOMP_RET_DATA))

static bool install(struct sock_filter *filter, unsigned short length)
{
	struct sock_fprog program = { length, filter };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

bool kernel_refuses(long number, int error)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		REFUSE(error),
		ALLOW,
	};

	return install(filter, sizeof(filter) / sizeof(filter[0]));
}

static bool refuse_argument(long number, uint16_t comparison, uint32_t operand, int error)
{
	struct sock_filter filter[] = {
		LOAD(nr),      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 3),
		LOAD(args[2]), BPF_JUMP(BPF_JMP | BPF_K | comparison, operand, 0, 1),
		REFUSE(error), ALLOW,
	};

	return install(filter, sizeof(filter) / sizeof(filter[0]));
}

bool kernel_refuses_value(long number, uint32_t value, int error)
{
	return refuse_argument(number, BPF_JEQ, value, error);
}

bool kernel_refuses_flags(long number, uint32_t bits, int error)
{
	return refuse_argument(number, BPF_JSET, bits, error);
}
