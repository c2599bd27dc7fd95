/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The default segment size of a connected transmit socket. The socket segments messages at this
 * size without a control message each time; passing the size to the kernel with each message takes
 * half as long as the segmentation itself. A message that the default would segment wrongly must
 * carry its own size.
 */
#include "link/udp_priv.h"

#include "link/sys.h"

#include <netinet/udp.h>

#define STREAK_MIN 64 /* messages in a row that carried the same size */
#define FAILURE_PAUSE 100000 /* messages, after a failure */

static size_t length_of(const struct vb_udp_message *message)
{
	size_t length = 0;

	for (uint32_t i = 0; i < message->iovec_count; i++)
		length += message->iovecs[i].iov_len;
	return length;
}

bool vb_udp_gso_default_is_known(const struct vb_udp_gso_default *gso_default,
				 const struct vb_udp_message *message)
{
	if (message->segment_length)
		return message->segment_length == gso_default->length;
	return !gso_default->length || length_of(message) <= gso_default->length;
}

void vb_udp_gso_default_notice(struct vb_udp *udp, struct vb_udp_gso_default *gso_default,
			       const struct vb_udp_message *message)
{
	bool is_known = vb_udp_gso_default_is_known(gso_default, message);

	if (message->segment_length != gso_default->last_length || is_known)
		gso_default->streak = gso_default->streak < 0 ? gso_default->streak : 0;
	if (is_known)
		return;
	gso_default->last_length = message->segment_length;
	if (++gso_default->streak >= STREAK_MIN)
		udp->is_connected_tx_work_due = true;
}

VB_COLD void vb_udp_gso_default_set(struct vb_udp *udp, int fd,
				    struct vb_udp_gso_default *gso_default)
{
	int length = gso_default->last_length;

	if (gso_default->streak < STREAK_MIN)
		return;
	if (vb_sys_setsockopt(fd, SOL_UDP, UDP_SEGMENT, &length, sizeof(length)) < 0) {
		gso_default->streak = -FAILURE_PAUSE;
		return;
	}
	gso_default->length = gso_default->last_length;
	gso_default->streak = 0;
	udp->counters[VB_UDP_TX_GSO_DEFAULTS]++;
}
