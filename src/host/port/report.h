/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All objects of an adapter in JSON, for programs: counters, drops, and what becomes of each QP.
 * docs/RUNNING.md has the fields. Other processes of the user ask for it by mail; the thread that
 * drives the adapter answers.
 */
#ifndef VB_HOST_PORT_REPORT_H
#define VB_HOST_PORT_REPORT_H

struct vb_port_member;
struct vb_state_source;

/* Answers the process that has asked. */
void vb_report_answer(const struct vb_state_source *source, struct vb_port_member *member);

#endif
