/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exports of the library. Every function is hidden unless it is marked here and listed in
 * libibverbs.map. At the end are the prototypes of functions that libibverbs.so.1 exports but no
 * installed header declares: providers and librdmacm know them from rdma-core's own tree.
 */
#ifndef VB_ABI_EXPORT_PRIV_H
#define VB_ABI_EXPORT_PRIV_H

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stdarg.h>
#include <stdbool.h>

#define VB_ABI_EXPORT __attribute__((visibility("default")))

/*
 * Binds a function of this file to a node of the map. Only programs linked with that version find
 * "name@NODE"; "name@@@NODE" renames the function to the default version. The files that use it are
 * compiled without link-time optimisation, which loses such directives.
 */
#define VB_ABI_VERSION(function, name_and_node) __asm__(".symver " #function ", " name_and_node)

/* Private parts of rdma-core; their contents are never accessed here. */
struct ibv_command_buffer;
struct verbs_context_ops;
struct verbs_cq;
struct verbs_device;
struct verbs_device_ops;
struct verbs_sysfs_dev;

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t size);
int ibv_read_ibdev_sysfs_file(char *buffer, size_t size, struct verbs_sysfs_dev *device,
			      const char *format, ...);

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, const struct ib_uverbs_ah_attr *from);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, const struct ib_uverbs_qp_attr *from);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, const struct ib_user_path_rec *from);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, const struct ibv_sa_path_rec *from);

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       int *type);

extern bool verbs_allow_disassociate_destroy;
void verbs_register_driver_34(const struct verbs_device_ops *ops);
void verbs_init_cq(struct ibv_cq *cq, struct ibv_context *context, struct ibv_comp_channel *channel,
		   void *cq_context);
struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);
void verbs_set_ops(struct verbs_context *context, const struct verbs_context_ops *ops);
void verbs_uninit_context(struct verbs_context *context);
void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd, size_t alloc_size,
				    struct verbs_context *context_offset, uint32_t driver_id);
void __verbs_log(struct verbs_context *context, uint32_t level, const char *format, ...);
unsigned int __ioctl_final_num_attrs(unsigned int count, struct ibv_command_buffer *link);

#endif
