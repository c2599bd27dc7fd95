/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an adapter is doing, in words for a person: its QPs, the path of each and the reason for it,
 * and the traffic on each path. Other processes of the user ask for it by mail; the thread that
 * drives the adapter answers.
 */
#ifndef VB_HOST_PORT_STATE_H
#define VB_HOST_PORT_STATE_H

#include "nic/nic.h"

struct vb_async_log;
struct vb_local_peers;
struct vb_port_member;

/* What an answer is made of. */
struct vb_state_source {
	const struct vb_nic *nic;
	const struct vb_local_peers *peers; /* or NULL */
	const char *device_name;
	struct vb_async_log *events; /* or NULL */
	uint64_t now_ns;
};

/* Answers the process that has asked. */
void vb_state_report(const struct vb_state_source *source, struct vb_port_member *member);
/*
 * The reason for a QP's path: "shared memory, …" or "wire: …"; NULL for a QP that is not connected,
 * or a UD QP, which chooses a path for each packet.
 */
const char *vb_state_path(const struct vb_nic *nic, const struct vb_local_peers *peers,
			  const struct vb_qp *qp);

#endif
