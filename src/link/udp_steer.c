/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of the link in a group that gets a datagram: a classic BPF program that the kernel
 * runs on the UDP payload. This is the only place in the link that looks into a packet: the
 * destination QPN lies in bytes 5 to 7 of the BTH.
 */
#include "link/udp_priv.h"

#include "link/sys.h"

#include <linux/filter.h>

#define BTH_QPN_WORD 4 /* the 32-bit word at this offset ends with the QPN */
#define QPN_MASK 0xffffff
#define QPN_SPECIAL_MAX 1

vb_err vb_udp_steer(struct vb_udp *udp, uint32_t shift, uint32_t mask, uint32_t special)
{
	/* A payload that is too short ends the program with 0. */
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, BTH_QPN_WORD),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, QPN_MASK),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, QPN_SPECIAL_MAX, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, special),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, shift),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog program = { .len = sizeof(steps) / sizeof(steps[0]), .filter = steps };

	if (shift > 23)
		return VB_EINVAL;
	if (vb_sys_setsockopt(udp->receiver, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
			      sizeof(program)) < 0)
		return VB_EOPNOTSUPP;
	return VB_OK;
}
