/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1, the general services interface: management datagrams (MADs) of the connection manager.
 * libibverbs offers it to librdmacm, at a version node of its own; no other library is to call it.
 * A process has at most one user of it. The user's machine (mgmt/cm.h) is one of those that
 * together are the connection manager of the host. Each MAD finds the process it is for, whichever
 * process it arrives at.
 *
 * Order of locks: the adapter's ownership, then the user's own locks, which its functions below
 * take. The user holds none of its locks when it calls vb_abi_qp1_*().
 */
#ifndef VB_HOST_QP1_QP1_USER_H
#define VB_HOST_QP1_QP1_USER_H

#include "host/sys/log.h"
#include "mgmt/cm.h"
#include "wire/flow.h"
#include "wire/number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibv_context;
struct ibv_device;
struct vb_abi_qp1_name;

/*
 * Each function is called by a thread that drives the adapter and owns it: it must not call verbs
 * or wait.
 */
struct vb_qp1_user {
	void *owner;
	enum vb_cm_verdict (*receive)(void *owner, const struct vb_flow *flow, vb_qpn source,
				      const uint8_t *bytes, uint32_t length, uint64_t now_ns,
				      struct vb_cm_addressee *addressee);
	/* Called until false: the MADs to send now. */
	bool (*take_mad)(void *owner, struct vb_cm_mad *mad);
	uint64_t (*deadline)(void *owner); /* VB_NEVER: none */
	void (*expire)(void *owner, uint64_t now_ns);
	/* The port at that address is closed, or there is no such host. */
	void (*on_unreachable)(void *owner, const struct vb_gid *address, uint64_t now_ns);
	/* The device's interface no longer exists and never comes back. May be NULL. */
	void (*on_removal)(void *owner, const struct ibv_device *device);
};

/* What the user's machine is made from (struct vb_cm_config). */
struct vb_qp1_config {
	uint32_t id_prefix;
	uint32_t id_prefix_bits;
	uint64_t ca_guid;
	/*
	 * Zeroed; valid until vb_abi_qp1_detach(). Other processes of this host read the rows when
	 * this process has died, to notify its peers.
	 */
	struct vb_cm_row *rows;
	uint32_t row_count;
};

/* --- for librdmacm; each returns 0 or an errno ------------------------------------------------ */

/*
 * A process has one user. The adapter of the context is its home; the user sends from any address
 * of the host. Its functions are called from the first vb_abi_qp1_kick() on, which announces that
 * the user has its machine, until vb_abi_qp1_detach() has returned. EBUSY: there is a user already.
 */
int vb_abi_qp1_attach(struct ibv_context *home, const struct vb_qp1_user *user,
		      struct vb_qp1_config *place_out);
/* Takes and sends all MADs of the user first. The user must have given back its names already. */
void vb_abi_qp1_detach(struct ibv_context *home);

/* The user has MADs to take, or an earlier deadline: sends the MADs in this thread. */
void vb_abi_qp1_kick(struct ibv_context *home);

/*
 * Holds the name of a service: requests for it that arrive at this host come to this process.
 * `address` NULL: any. `families` as in struct vb_cm_service. EADDRINUSE: another process of this
 * user has the name.
 */
int vb_abi_qp1_listen(struct ibv_context *home, uint64_t service, const struct vb_gid *address,
		      uint32_t families, struct vb_abi_qp1_name **name_out);
/* Another process may take the name now. For a moment requests wait for one to do so. */
void vb_abi_qp1_unlisten(struct vb_abi_qp1_name *name);

/*
 * Waits until `fd` is readable, driving the adapter meanwhile. Returns 0, EINTR, or EAGAIN if fd
 * does not block.
 */
int vb_abi_qp1_wait(struct ibv_context *home, int fd);

/* Writes a line to the log that the two libraries share. */
void vb_abi_log_line(enum vb_log_level level, const struct vb_log_about *about, const char *line);

/* Memory of libibverbs' heap, as in base/heap.h. */
void *vb_abi_heap_alloc(size_t count, size_t size);
void vb_abi_heap_free(void *memory);

#endif
