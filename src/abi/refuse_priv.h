/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusal of a call: the errno for the program, and a line in the log that explains it to the user.
 * The line names the verb, the object, the problem and the limit. If many verbs share a check, the
 * line names only the object. Ordinary refusals, such as a full queue, use VB_LOG_DEBUG.
 */
#ifndef VB_ABI_REFUSE_PRIV_H
#define VB_ABI_REFUSE_PRIV_H

#include "abi/objects_priv.h"
#include "host/sys/log.h"

/* The value is `code`, an errno: return vb_abi_refuse(EINVAL, "ibv_create_cq: …", …); */
#define vb_abi_refuse(code, ...) \
	(vb_log_about(VB_LOG_WARN, VB_LOG_ABOUT(.error = (code)), __VA_ARGS__), (code))
/* The same for a device; `opened` is its struct ibv_context *. */
#define vb_abi_refuse_at(code, opened, ...)                                                \
	(vb_log_about(VB_LOG_WARN,                                                         \
		      VB_LOG_ABOUT(.device = vb_abi_device_name(opened), .error = (code)), \
		      __VA_ARGS__),                                                        \
	 (code))
/* The same for a struct ibv_qp *. `verb` is NULL if the format begins with it. */
#define vb_abi_refuse_qp(code, verb, verbs_qp, ...)                                   \
	(vb_log_about(VB_LOG_WARN,                                                    \
		      VB_LOG_ABOUT(.phase = (verb),                                   \
				   .device = vb_abi_device_name((verbs_qp)->context), \
				   .qpn = (verbs_qp)->qp_num, .error = (code)),       \
		      __VA_ARGS__),                                                   \
	 (code))

/* "vb_eth0" */
const char *vb_abi_device_name(const struct ibv_context *context);

/*
 * Log what the engine refused and return the errno: a QP transition (described before the attempt,
 * because the state may change) or a work request. `verb` is the calling verb.
 */
int vb_abi_refuse_modify(const struct vb_abi_qp *qp, const struct vb_qp_attr *attr, uint32_t mask);
int vb_abi_refuse_send(const char *verb, const struct vb_abi_qp *qp,
		       const struct vb_send_request *request, vb_err err);
int vb_abi_refuse_recv(const struct vb_abi_qp *qp, const struct vb_recv_request *request,
		       vb_err err);
int vb_abi_refuse_srq_recv(const struct vb_abi_srq *srq, const struct vb_recv_request *request,
			   vb_err err);
int vb_abi_refuse_tag(const struct vb_abi_srq *srq, const struct vb_tag_request *request,
		      vb_err err);

#endif
