/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the long SENDs of a QP go to a local peer: in trains or in packets. Which is faster depends
 * on the CPU, the kernel and the memory of both programs, so each QP measures both with the
 * program's own messages and goes the cheaper way. The time is an argument, and nothing here knows
 * the engine.
 *
 * A sample is some MB of messages that went one way. Its cost is the time that passed while at
 * least one message was in flight, for each byte. The other way is tried now and then, ever more
 * seldom.
 */
#ifndef VB_NIC_TRAIN_CHOICE_PRIV_H
#define VB_NIC_TRAIN_CHOICE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#define VB_TRIAL_SAMPLES_MAX 3u
#define VB_TRIAL_WAIT_MIN 32u /* samples between two trials */
#define VB_TRIAL_WAIT_MAX 1024u

enum vb_train_way { VB_BY_TRAINS = 0, VB_BY_PACKETS };

/* Messages are numbered as they begin, modulo 2^32, and are done in this order. */
struct vb_train_choice {
	uint64_t counted_ns; /* the time before this is counted, or did not count */
	uint64_t busy_ns; /* of this sample */
	uint64_t byte_count; /* of this sample's messages that are done */
	uint32_t first; /* messages from this one on belong to the sample */
	uint32_t newest; /* the last message that began */
	/* The last samples of the chosen way, in ns for a MB; UINT32_MAX: there was none. */
	uint32_t costs[VB_TRIAL_SAMPLES_MAX];
	uint32_t trial_cost; /* the least of the trial's samples */
	uint16_t samples_left; /* of the chosen way, before the next trial */
	uint16_t next_wait; /* how many there will be after that trial */
	uint8_t cost_index; /* where the next sample of the chosen way goes */
	uint8_t trial_sample_count;
	uint8_t chosen; /* enum vb_train_way */
	bool is_trial; /* the way is the other one */
};

void vb_train_choice_init(struct vb_train_choice *choice);
/* Which way messages begin now. */
enum vb_train_way vb_train_choice_way(const struct vb_train_choice *choice);
/* A message begins; `is_busy`: others are in flight. The same message may begin more than once. */
void vb_train_choice_on_begun(struct vb_train_choice *choice, uint32_t number, bool is_busy,
			      uint64_t now_ns);
/*
 * The oldest message was acknowledged. `sample_bytes` is the length of a sample. Returns whether
 * other messages are in flight.
 */
bool vb_train_choice_on_done(struct vb_train_choice *choice, uint32_t number, uint32_t length,
			     uint32_t sample_bytes, uint64_t now_ns);
/* What is in flight takes longer for a reason that is not its way. */
void vb_train_choice_on_disturbed(struct vb_train_choice *choice);

#endif
