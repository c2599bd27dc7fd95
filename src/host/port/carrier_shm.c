/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared-memory links of local peers, as a carrier. */
#include "host/port/carrier_shm.h"

#include "base/list.h"
#include "host/local/local_peer.h"

static struct vb_local_peers *peers_of(struct vb_carrier *carrier)
{
	return VB_CONTAINER(carrier, struct vb_carrier_shm, carrier)->peers;
}

/* A frame without room is lost, and its peer is dead: the engine has counted the room. */
static uint32_t send_frames(struct vb_carrier *carrier, struct vb_slot *slots, uint32_t count)
{
	struct vb_local_peers *peers = peers_of(carrier);

	for (uint32_t i = 0; i < count; i++)
		(void)vb_local_peer_send(peers, vb_local_peer_of_shm_link(slots[i].path.link),
					 &slots[i]);
	return count;
}

static void flush(struct vb_carrier *carrier)
{
	vb_local_peers_flush(peers_of(carrier));
}

static uint32_t receive(struct vb_carrier *carrier, uint64_t now_ns, enum vb_carrier_effort effort,
			struct vb_frame *frames, uint32_t capacity)
{
	(void)now_ns;
	(void)effort; /* all links are in one place */
	return vb_local_peers_receive(peers_of(carrier), frames, capacity);
}

static void release(struct vb_carrier *carrier)
{
	vb_local_peers_release(peers_of(carrier));
}

static uint32_t fds_of(struct vb_carrier *carrier, struct pollfd fds[VB_CARRIER_FDS_MAX])
{
	fds[0] = (struct pollfd){ .fd = vb_local_peers_fd(peers_of(carrier)), .events = POLLIN };
	return 1;
}

static void on_wake(struct vb_carrier *carrier)
{
	vb_local_peers_take_wake(peers_of(carrier));
}

static const struct vb_carrier_type type = {
	.name = "shared memory",
	.frame_length_max = VB_LOCAL_PEER_FRAME_MAX,
	.send = send_frames,
	.flush = flush,
	.receive = receive,
	.release = release,
	.fds = fds_of,
	.on_wake = on_wake,
};

void vb_carrier_shm_init(struct vb_carrier_shm *shm, struct vb_local_peers *peers)
{
	*shm = (struct vb_carrier_shm){ .carrier = { .type = &type }, .peers = peers };
}
