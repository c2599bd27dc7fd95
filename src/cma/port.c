/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports. The ports of this process are in a list. Against other processes the name of its service
 * (host/qp1/qp1_user.h) holds a port, from the bind on, so that a second process is refused where
 * the kernel would refuse it. A port chosen only to connect from needs no name: no request asks for
 * it.
 */
#include "cma/cma_priv.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PRIVILEGED_COUNT 1024
#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_COUNT 28232
#define TRIES 1000

static struct vb_list_node bound_ids = { &bound_ids, &bound_ids };
static struct vb_list_node set_aside = { &set_aside, &set_aside };

static const struct sockaddr *source_of(const struct vb_cma_id *id)
{
	return &id->id.route.addr.src_addr;
}

struct vb_cm_service vb_cma_port_service(const struct vb_cma_id *id)
{
	const struct sockaddr *source = source_of(id);
	struct vb_cm_service service = {
		.id = vb_service_id((uint16_t)id->id.ps, vb_cma_address_port(source)),
		.takes = source->sa_family == AF_INET ? VB_CM_IPV4 : VB_CM_IPV6,
	};

	if (!id->is_for_all)
		service.address = vb_cma_address_gid(source);
	else if (source->sa_family == AF_INET6 && !id->is_afonly)
		service.takes |= VB_CM_IPV4;
	return service;
}

/* Checks whether two identifiers may have the same port, by the kernel's rules. */
static int check_pair(const struct vb_cma_id *id, const struct vb_cma_id *other)
{
	const struct sockaddr *mine = source_of(id);
	const struct sockaddr *theirs = source_of(other);

	if (id->id.ps != other->id.ps || vb_cma_address_port(mine) != vb_cma_address_port(theirs))
		return 0;
	if (id->is_reusing && other->is_reusing && !other->listener)
		return 0;
	if (id->is_afonly && other->is_afonly && mine->sa_family != theirs->sa_family)
		return 0;
	if (id->is_for_all || other->is_for_all)
		return EADDRNOTAVAIL;
	return vb_cma_address_equal(mine, theirs) ? EADDRINUSE : 0;
}

/* Call with the lock. */
static int add(struct vb_cma_id *id)
{
	int error = 0;

	for (struct vb_list_node *node = bound_ids.next; node != &bound_ids && !error;
	     node = node->next)
		error = check_pair(id, VB_CONTAINER(node, struct vb_cma_id, bound));
	if (!error)
		vb_list_append(&bound_ids, &id->bound);
	return error;
}

int vb_cma_port_take_name(struct vb_cma_id *id)
{
	struct vb_cm_service service = vb_cma_port_service(id);
	int error;

	if (id->name)
		return 0;
	error = vb_cma_machine_start();
	if (error)
		return error;
	return vb_abi_qp1_listen(vb_cma_machine_home(), service.id,
				 vb_gid_is_zero(&service.address) ? NULL : &service.address,
				 service.takes, &id->name);
}

static int claim(struct vb_cma_id *id, bool is_server)
{
	int error;

	vb_cma_lock();
	error = add(id);
	vb_cma_unlock();
	if (error || !is_server)
		return error;
	error = vb_cma_port_take_name(id);
	/* An identifier that shares the port tries again when it listens. */
	if (error == EADDRINUSE && id->is_reusing)
		return 0;
	if (error)
		vb_cma_port_release(id);
	return error;
}

static int claim_any(struct vb_cma_id *id, bool is_server)
{
	uint32_t first = vb_cma_random();
	int error = EADDRNOTAVAIL;

	for (uint32_t i = 0; i < TRIES && (error == EADDRINUSE || error == EADDRNOTAVAIL); i++) {
		vb_cma_address_set_port(
			&id->id.route.addr.src_addr,
			(uint16_t)(EPHEMERAL_FIRST + (first + i) % EPHEMERAL_COUNT));
		error = claim(id, is_server);
	}
	if (error)
		vb_cma_address_set_port(&id->id.route.addr.src_addr, 0);
	return error;
}

static bool has_capability(uint32_t capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return !syscall(SYS_capget, &header, data) &&
	       data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

int vb_cma_port_claim(struct vb_cma_id *id, bool is_server)
{
	uint16_t port = vb_cma_address_port(source_of(id));
	char text[VB_CMA_ADDRESS_TEXT];
	int error;

	if (port && port < PRIVILEGED_COUNT && !has_capability(CAP_NET_BIND_SERVICE))
		return vb_cma_refuse(
			EACCES, "rdma_bind_addr: %s: a port below %d wants CAP_NET_BIND_SERVICE",
			vb_cma_address_describe(source_of(id), text), PRIVILEGED_COUNT);
	error = port ? claim(id, is_server) : claim_any(id, is_server);
	if (error)
		vb_cma_log(VB_LOG_WARN, error,
			   "rdma_bind_addr: %s: port space 0x%04x: it is taken (errno %d)",
			   vb_cma_address_describe(source_of(id), text), id->id.ps, error);
	return error;
}

void vb_cma_port_release(struct vb_cma_id *id)
{
	struct vb_abi_qp1_name *name = id->name;

	vb_cma_lock();
	vb_list_remove(&id->bound);
	id->name = NULL;
	vb_cma_unlock();
	if (name)
		vb_abi_qp1_unlisten(name);
}

void vb_cma_port_set_aside(void)
{
	vb_list_append_all(&set_aside, &bound_ids);
}

void vb_cma_port_take_back(void)
{
	vb_cma_lock();
	vb_list_append_all(&bound_ids, &set_aside);
	vb_cma_unlock();
}
