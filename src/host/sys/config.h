/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings that a user may choose. In order of precedence: the command line, the environment
 * (VERBATIM_<KEY>), and one file of `key = value` lines: the one that VERBATIM_CONFIG names, or
 * ~/.config/verbatim.conf, or /etc/verbatim.conf. One table (config.c) has every key with its
 * range, default and help. A wrong value is reported in one line of the log, and the default is
 * used instead: a program must not fail because of a typing error in a file that it does not know.
 */
#ifndef VB_HOST_SYS_CONFIG_H
#define VB_HOST_SYS_CONFIG_H

#include "base/err.h"
#include "host/sys/log.h"
#include "nic/nic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VB_CONFIG_TEXT_MAX 1024 /* of a value, with its terminating zero */

/* Which path packets take to a peer on this host. */
enum vb_path_choice {
	VB_PATH_AUTO, /* shared-memory links, where possible (host/local/local_peer.h) */
	VB_PATH_WIRE, /* the wire, as to all other peers */
};

/*
 * Whether private memory is converted, so that peers on this host can map it
 * (host/local/conversion.h).
 */
enum vb_share {
	VB_SHARE_ON,
	VB_SHARE_OFF,
};

struct vb_config {
	char devices[VB_CONFIG_TEXT_MAX]; /* see vb_device_is_chosen(); "" for all */
	uint32_t mtu; /* limit of the path MTU; 0: what fits the interface */
	enum vb_log_level log;
	char log_file[VB_CONFIG_TEXT_MAX]; /* "": stderr */
	enum vb_log_format log_format;
	enum vb_icrc_mode icrc;
	enum vb_path_choice path;
	enum vb_share share;
	uint32_t self_check; /* host/port/self_check.h; 0: off */
	uint32_t receive_buffer; /* bytes, of the socket; 0: a default */
	/* Limits for what a program may ask for; 0: the engine's default. */
	uint32_t qp_depth;
	uint32_t cq_depth;
	uint32_t srq_depth;
	uint32_t reads;
};

/* Reads file and environment, and sets the log's level, format and file. */
void vb_config_load(struct vb_config *config);

/*
 * Sets one value, for the command line. `where` is what a complaint in the log begins with.
 * VB_EINVAL for a key that does not exist, which changes nothing, and for a wrong value, which sets
 * the default.
 */
VB_MUST_USE vb_err vb_config_set(struct vb_config *config, const char *key, const char *value,
				 const char *where);

/* The environment variable of a key: VERBATIM_MTU. */
void vb_config_name_variable(const char *key, char *name, size_t size);

/*
 * Describes one setting in two lines: its value in `config`, and help. False behind the last row.
 */
bool vb_config_describe(const struct vb_config *config, uint32_t row, char *text, size_t size);

#endif
