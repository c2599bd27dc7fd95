/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager without memory: the n-th allocation fails, for every n. A call then
 * returns VB_ENOMEM and leaves nothing behind; a request of a peer is dropped, and accepted when it
 * arrives again. The linker wraps vb_heap_alloc() and vb_heap_free() (test_cm_memory.link). Also
 * here: which configurations are valid.
 */
#include "harness.h"
#include "support_allocator.h"

#include "mgmt/cm.h"

#include <string.h>

static void fail_at(uint32_t n)
{
	fails_at = n;
	has_failed = false;
}

static struct vb_cm_config config_of(void)
{
	return (struct vb_cm_config){ .connection_max = 100, .listener_max = 2 };
}

TEST(a_machine_that_finds_no_memory_leaves_none_behind)
{
	struct vb_cm_config config = config_of();
	uint32_t n = 1;

	for (;; n++) {
		int64_t before = live_count;
		struct vb_cm *cm = NULL;
		vb_err err;

		fail_at(n);
		err = vb_cm_create(&config, &cm);
		fails_at = 0;
		if (!has_failed) {
			EXPECT_EQ(err, VB_OK);
			vb_cm_destroy(cm);
			EXPECT_EQ(live_count, before);
			break;
		}
		EXPECT_EQ(err, VB_ENOMEM);
		EXPECT(!cm);
		EXPECT_EQ(live_count, before);
	}
	EXPECT(n > 4);
}

TEST(a_listener_that_finds_no_memory_can_be_tried_again)
{
	struct vb_cm_config config = config_of();
	struct vb_cm_service service = { .id = 1, .takes = VB_CM_RAW };
	struct vb_cm_listener *listener;
	struct vb_cm *cm;

	EXPECT_EQ(vb_cm_create(&config, &cm), VB_OK);
	fail_at(1);
	EXPECT_EQ(vb_cm_listen(cm, &service, 1, NULL, &listener), VB_ENOMEM);
	EXPECT_EQ(vb_cm_listen(cm, &service, 1, NULL, &listener), VB_OK);
	service.id = 2;
	EXPECT_EQ(vb_cm_listen(cm, &service, 1, NULL, &listener), VB_OK);
	service.id = 3;
	EXPECT_EQ(vb_cm_listen(cm, &service, 1, NULL, &listener), VB_ENOSPC);
	vb_cm_destroy(cm);
	EXPECT_EQ(live_count, 0);
}

/* Also where the timer heap grows. */
TEST(a_connection_that_finds_no_memory_can_be_tried_again)
{
	struct vb_cm_config config = config_of();
	struct vb_cm_connection *connection;
	uint32_t failures = 0;
	struct vb_cm *cm;

	EXPECT_EQ(vb_cm_create(&config, &cm), VB_OK);
	for (uint32_t i = 0; i < config.connection_max; i++) {
		for (uint32_t n = 1;; n++) {
			vb_err err;

			fail_at(n);
			err = vb_cm_connection_create(cm, NULL, &connection);
			fails_at = 0;
			EXPECT_EQ(err, has_failed ? VB_ENOMEM : VB_OK);
			if (!has_failed)
				break;
			failures++;
		}
	}
	EXPECT(failures > config.connection_max);
	EXPECT_EQ(vb_cm_connection_create(cm, NULL, &connection), VB_ENOSPC);
	vb_cm_destroy(cm);
	EXPECT_EQ(live_count, 0);
}

TEST(a_request_that_finds_no_memory_is_taken_when_it_comes_again)
{
	struct vb_cm_config config = config_of();
	struct vb_cm_service service = { .id = 1, .takes = VB_CM_RAW };
	struct vb_flow flow = { .source = vb_gid_from_ipv4(1) };
	struct vb_mad mad = { .kind = VB_MAD_REQ, .local_id = 5, .req.service = 1 };
	struct vb_cm_listener *listener;
	struct vb_cm_addressee addressee;
	struct vb_cm_event event;
	uint8_t bytes[VB_MAD_SIZE];
	struct vb_cm *cm;
	uint32_t n = 1;

	EXPECT_EQ(vb_cm_create(&config, &cm), VB_OK);
	EXPECT_EQ(vb_cm_listen(cm, &service, 1, NULL, &listener), VB_OK);
	vb_mad_store(bytes, &mad);
	for (;; n++) {
		int64_t before = live_count;

		fail_at(n);
		EXPECT_EQ(vb_cm_receive(cm, &flow, VB_MAD_QPN, bytes, sizeof(bytes), 0, &addressee),
			  VB_CM_TAKEN);
		fails_at = 0;
		if (!has_failed)
			break;
		EXPECT(live_count <= before + 1); /* the timer heap may have grown */
		EXPECT(!vb_cm_take_event(cm, &event));
	}
	EXPECT(n > 1);
	EXPECT_EQ(vb_cm_counters(cm)->over_backlog, n - 1);
	EXPECT(vb_cm_take_event(cm, &event));
	vb_cm_destroy(cm);
	EXPECT_EQ(live_count, 0);
}

TEST(a_configuration_that_cannot_work_is_refused)
{
	struct vb_cm_config config = { .listener_max = 1 };
	struct vb_cm *cm;

	EXPECT_EQ(vb_cm_create(&config, &cm), VB_EINVAL);
	config = config_of();
	config.id_prefix_bits = 17;
	EXPECT_EQ(vb_cm_create(&config, &cm), VB_EINVAL);
	config.id_prefix_bits = 4;
	config.id_prefix = 16;
	EXPECT_EQ(vb_cm_create(&config, &cm), VB_EINVAL);
	config.id_prefix = 15;
	EXPECT_EQ(vb_cm_create(&config, &cm), VB_OK);
	vb_cm_destroy(cm);
}

TEST(ids_have_the_prefix_and_are_all_used_before_one_comes_back)
{
	struct vb_cm_config config = {
		.seed = 3, .id_prefix = 0xabcd, .id_prefix_bits = 16, .connection_max = 1
	};
	static bool is_seen[65536];
	struct vb_cm_connection *connection;
	struct vb_cm *cm;

	EXPECT_EQ(vb_cm_create(&config, &cm), VB_OK);
	for (uint32_t i = 0; i < 65536; i++) {
		uint32_t id;

		EXPECT_EQ(vb_cm_connection_create(cm, NULL, &connection), VB_OK);
		id = vb_cm_connection_id(connection);
		EXPECT_EQ(id >> 16, 0xabcd);
		EXPECT(!is_seen[id & 0xffff]);
		is_seen[id & 0xffff] = true;
		vb_cm_connection_destroy(connection, 0);
	}
	vb_cm_destroy(cm);
	config.connection_max = 65536; /* more than there are IDs, counting 0 */
	EXPECT_EQ(vb_cm_create(&config, &cm), VB_EINVAL);
}
