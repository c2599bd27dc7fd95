/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An adapter that is unplugged and plugged in again, as when a program has closed its descriptors,
 * is as it was before: in its multicast groups, with what its sockets report. These tests own the
 * engine meanwhile, so that the helper thread does not repair anything.
 */
#include "support_verbs.h"

#include "abi/objects_priv.h"
#include "host/adapter/adapter_priv.h"
#include "host/registry/receivers.h"
#include "link/udp.h"
#include "link/udp_priv.h"

#include <sys/resource.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct vb_adapter *open_adapter(void)
{
	struct ibv_device **list;

	program_enter_namespace();
	list = ibv_get_device_list(NULL);
	EXPECT(list && list[0]);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	EXPECT(context);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	EXPECT(pd && cq);
	return vb_abi_context_of(context)->adapter;
}

static struct ibv_qp *create_datagram_qp(void)
{
	struct ibv_qp *qp = ibv_create_qp(pd, &(struct ibv_qp_init_attr){ .send_cq = cq,
									  .recv_cq = cq,
									  .qp_type = IBV_QPT_UD });

	EXPECT(qp);
	return qp;
}

static void close_adapter(struct ibv_qp *qp)
{
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

static vb_err plug_in_with_descriptors(struct vb_adapter *adapter, rlim_t limit)
{
	const struct rlimit few = { limit, 4096 };
	const struct rlimit enough = { 4096, 4096 };
	vb_err err;

	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	err = vb_adapter_replug(adapter);
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &enough), 0);
	return err;
}

/* With one descriptor more each time, another part of the plug is the first to fail. */
TEST(groups_outlast_attempts_to_plug_in_that_fail)
{
	struct vb_adapter *adapter = open_adapter();
	struct ibv_qp *qp = create_datagram_qp();
	const union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 } };

	EXPECT_EQ(ibv_attach_mcast(qp, &group, 0), 0);
	vb_adapter_enter(adapter);
	vb_adapter_unplug(adapter);
	for (rlim_t limit = 4; plug_in_with_descriptors(adapter, limit); limit++) {
		EXPECT(limit < 256);
		EXPECT_EQ(vb_adapter_replug(adapter), VB_OK);
		EXPECT_EQ(vb_udp_group_count(adapter->udp), 1);
		EXPECT_MEM(vb_udp_group(adapter->udp, 0).ip, group.raw, sizeof(group.raw));
		vb_adapter_unplug(adapter);
	}
	vb_adapter_leave(adapter);
	EXPECT_EQ(ibv_detach_mcast(qp, &group, 0), 0);
	close_adapter(qp);
}

static bool has_ip_fields(const struct vb_adapter *adapter)
{
	return vb_udp_receiver_has_ip_fields(vb_receivers_fd(adapter->number));
}

TEST(sockets_still_report_the_traffic_class_after_plugging_in_again)
{
	struct vb_adapter *adapter = open_adapter();
	struct ibv_qp *qp;

	EXPECT(!has_ip_fields(adapter));
	qp = create_datagram_qp();
	EXPECT(has_ip_fields(adapter));
	vb_adapter_enter(adapter);
	vb_adapter_unplug(adapter);
	EXPECT_EQ(vb_adapter_replug(adapter), VB_OK);
	EXPECT(has_ip_fields(adapter));
	vb_adapter_leave(adapter);
	close_adapter(qp);
}

TEST(sockets_report_the_traffic_class_if_it_was_asked_for_while_there_were_none)
{
	struct vb_adapter *adapter = open_adapter();

	vb_adapter_enter(adapter);
	vb_adapter_unplug(adapter);
	vb_adapter_leave(adapter);
	vb_adapter_enable_ip_fields(adapter);
	vb_adapter_enter(adapter);
	vb_adapter_unplug(adapter); /* the helper thread may have been faster */
	EXPECT_EQ(vb_adapter_replug(adapter), VB_OK);
	EXPECT(has_ip_fields(adapter));
	vb_adapter_leave(adapter);
	close_adapter(create_datagram_qp());
}
