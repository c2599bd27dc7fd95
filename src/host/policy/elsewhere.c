/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/policy/elsewhere.h"

bool vb_elsewhere_is_due(struct vb_elsewhere *elsewhere, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - elsewhere->looked_ns;

	elsewhere->rounds++;
	return passed_ns >= VB_ELSEWHERE_NS &&
	       (elsewhere->rounds >= VB_ELSEWHERE_ROUNDS || passed_ns >= VB_ELSEWHERE_NS_MAX);
}

void vb_elsewhere_on_look(struct vb_elsewhere *elsewhere, uint64_t now_ns)
{
	elsewhere->looked_ns = now_ns;
	elsewhere->rounds = 0;
}
