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

#define WORTH_IT 64 /* messages in a row that carried the same size */
#define NOT_AGAIN_BEFORE 100000 /* messages, after a failure */

static size_t length_of(const struct vb_udp_message *message)
{
	size_t length = 0;

	for (uint32_t i = 0; i < message->iovec_count; i++)
		length += message->iovecs[i].iov_len;
	return length;
}

bool vb_udp_cut_is_known(const struct vb_udp_cut *cut, const struct vb_udp_message *message)
{
	if (message->segment_length)
		return message->segment_length == cut->length;
	return !cut->length || length_of(message) <= cut->length;
}

void vb_udp_cut_notice(struct vb_udp *udp, struct vb_udp_cut *cut,
		       const struct vb_udp_message *message)
{
	bool is_known = vb_udp_cut_is_known(cut, message);

	if (message->segment_length != cut->wish || is_known)
		cut->streak = cut->streak < 0 ? cut->streak : 0;
	if (is_known)
		return;
	cut->wish = message->segment_length;
	if (++cut->streak >= WORTH_IT)
		udp->is_express_work_due = true;
}

VB_COLD void vb_udp_cut_tell(struct vb_udp *udp, int fd, struct vb_udp_cut *cut)
{
	int length = cut->wish;

	if (cut->streak < WORTH_IT)
		return;
	if (vb_sys_setsockopt(fd, SOL_UDP, UDP_SEGMENT, &length, sizeof(length)) < 0) {
		cut->streak = -NOT_AGAIN_BEFORE;
		return;
	}
	cut->length = cut->wish;
	cut->streak = 0;
	udp->counters[VB_UDP_TX_CUTS]++;
}
