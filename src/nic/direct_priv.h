/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that the initiator executes itself in the memory of a peer on this host. */
#ifndef VB_NIC_DIRECT_PRIV_H
#define VB_NIC_DIRECT_PRIV_H

#include "nic/qp_priv.h"

#define VB_DIRECT_TURN (128u << 10) /* bytes that may be moved in one turn */
#define VB_DIRECT_PART_MIN 4096u /* less than that is not worth a part */
#define VB_DIRECT_SHORT_MAX \
	4096u /* bytes of a request that whoever posts it executes at once, or together with others */

enum vb_direct {
	VB_DIRECT_REFUSED, /* it must go out in packets */
	VB_DIRECT_DONE, /* it, or the next part of it, is executed */
	VB_DIRECT_LATER, /* enough was moved in this turn, and the QP has another one */
	VB_DIRECT_WAIT, /* when what is on its way has arrived, it can be */
};

/* For the request at send_index, of which no packet has gone out, of a QP that has a reach. */
enum vb_direct vb_qp_execute_directly(struct vb_qp *qp, const struct vb_wqe *wqe);

#endif
