/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rule that atomic operations happen exactly once. Some order of all that succeeded and any of
 * those that failed (which may have been executed once before the answer was lost) must explain the
 * old values that they return and the final value.
 */
#include "sim/model.h"

#include "sim/model_priv.h"

#define UNKNOWN_MAX 16 /* if more failed than this, only their sum is checked */

static uint64_t value_of(const struct vb_model_counter *counter)
{
	uint64_t value;

	memcpy(&value, vb_arena_bytes(counter->arena, counter->address), 8);
	return value;
}

static bool is_of(const struct vb_model_request *request, uint32_t counter)
{
	return !request->is_receive && request->counter == counter;
}

static bool has_succeeded(const struct vb_model_request *request)
{
	return request->outcome == VB_OUTCOME_DONE && request->status == VB_STATUS_SUCCESS;
}

/* True if it did not succeed, but the responder may have executed it. */
static bool may_have_happened(const struct vb_model_request *request)
{
	return !has_succeeded(request) && request->allowed & VB_STATUS_BIT(VB_STATUS_SUCCESS);
}

/* Steps that returned their old value cover [old, old + add) and must not overlap. */
static void check_add_overlaps(struct vb_model *model, uint32_t counter, uint64_t final)
{
	uint64_t initial = model->counters[counter].initial;

	for (uint32_t i = 0; i < model->request_count; i++) {
		const struct vb_model_request *a = &model->requests[i];

		if (!is_of(a, counter) || !has_succeeded(a) || !a->is_old_known)
			continue;
		if (a->old - initial > final - initial ||
		    a->old + a->compare_add - initial > final - initial) {
			vb_model_report(
				model, i,
				"an old value lies between the first and the last value of the counter",
				final, a->old);
			return;
		}
		for (uint32_t j = i + 1; j < model->request_count; j++) {
			const struct vb_model_request *b = &model->requests[j];

			if (!is_of(b, counter) || !has_succeeded(b) || !b->is_old_known)
				continue;
			if (a->old - initial < b->old + b->compare_add - initial &&
			    b->old - initial < a->old + a->compare_add - initial) {
				vb_model_report(
					model, j,
					"two FETCH_ADDs of one counter never see the same step",
					a->old, b->old);
				return;
			}
			if (a->qp == b->qp && b->old - initial < a->old - initial) {
				vb_model_report(model, j, "FETCH_ADDs of one QP happen in order",
						a->old, b->old);
				return;
			}
		}
	}
}

static bool is_subset_sum(const uint64_t *values, uint32_t count, uint64_t sum)
{
	for (uint32_t subset = 0; subset < 1u << count; subset++) {
		uint64_t total = 0;

		for (uint32_t i = 0; i < count; i++)
			total += subset >> i & 1 ? values[i] : 0;
		if (total == sum)
			return true;
	}
	return false;
}

static void check_adds(struct vb_model *model, uint32_t counter)
{
	uint64_t unknown[UNKNOWN_MAX], unknown_sum = 0, known_sum = 0;
	uint64_t final = value_of(&model->counters[counter]);
	uint64_t rest;
	uint32_t unknown_count = 0;

	for (uint32_t i = 0; i < model->request_count; i++) {
		const struct vb_model_request *request = &model->requests[i];

		if (!is_of(request, counter))
			continue;
		if (has_succeeded(request)) {
			known_sum += request->compare_add;
		} else if (may_have_happened(request)) {
			if (unknown_count < UNKNOWN_MAX)
				unknown[unknown_count] = request->compare_add;
			unknown_count++;
			unknown_sum += request->compare_add;
		}
	}
	rest = final - model->counters[counter].initial - known_sum;
	if (unknown_count <= UNKNOWN_MAX ? !is_subset_sum(unknown, unknown_count, rest)
					 : rest > unknown_sum) {
		vb_model_report(
			model, VB_MODEL_NONE,
			"each FETCH_ADD that succeeded happened exactly once, each that failed at most once",
			model->counters[counter].initial + known_sum, final);
		return;
	}
	check_add_overlaps(model, counter, final);
}

/*
 * Finds the request that could have changed `value`: one that succeeded, otherwise one that failed.
 */
static uint32_t step_from(const struct vb_model *model, uint32_t counter, uint64_t value,
			  bool succeeded, uint32_t from)
{
	for (uint32_t i = from; i < model->request_count; i++) {
		const struct vb_model_request *request = &model->requests[i];

		if (!is_of(request, counter) || request->compare_add != value)
			continue;
		if (succeeded ? has_succeeded(request) && request->old == value
			      : may_have_happened(request))
			return i;
	}
	return VB_MODEL_NONE;
}

static uint32_t count_swaps(const struct vb_model *model, uint32_t counter)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < model->request_count; i++) {
		const struct vb_model_request *request = &model->requests[i];

		if (is_of(request, counter) && has_succeeded(request) &&
		    request->old == request->compare_add)
			count++;
	}
	return count;
}

/*
 * True if a sequence from `value` to `final` takes `swaps` known steps. Swapped-in values are all
 * different.
 */
static bool leads_to(const struct vb_model *model, uint32_t counter, uint64_t value, uint64_t final,
		     uint32_t swaps, uint32_t depth)
{
	uint32_t known = step_from(model, counter, value, true, 0);

	if (known != VB_MODEL_NONE)
		return swaps && depth &&
		       leads_to(model, counter, model->requests[known].swap, final, swaps - 1,
				depth - 1);
	if (value == final && !swaps)
		return true;
	for (uint32_t i = step_from(model, counter, value, false, 0); depth && i != VB_MODEL_NONE;
	     i = step_from(model, counter, value, false, i + 1)) {
		if (leads_to(model, counter, model->requests[i].swap, final, swaps, depth - 1))
			return true;
	}
	return false;
}

/* True if a value that a COMPARE_SWAP saw was ever there. */
static bool was_ever_there(const struct vb_model *model, uint32_t counter, uint64_t value)
{
	if (value == model->counters[counter].initial)
		return true;
	for (uint32_t i = 0; i < model->request_count; i++) {
		const struct vb_model_request *request = &model->requests[i];

		if (is_of(request, counter) && request->swap == value &&
		    (may_have_happened(request) || request->old == request->compare_add))
			return true;
	}
	return false;
}

static void check_swaps(struct vb_model *model, uint32_t counter)
{
	uint64_t final = value_of(&model->counters[counter]);

	for (uint32_t i = 0; i < model->request_count; i++) {
		const struct vb_model_request *request = &model->requests[i];

		if (is_of(request, counter) && has_succeeded(request) &&
		    !was_ever_there(model, counter, request->old)) {
			vb_model_report(model, i, "a COMPARE_SWAP returns a value that was there",
					0, request->old);
			return;
		}
	}
	if (!leads_to(model, counter, model->counters[counter].initial, final,
		      count_swaps(model, counter), model->request_count))
		vb_model_report(
			model, VB_MODEL_NONE,
			"the COMPARE_SWAPs that succeeded form one chain from the first to the last value",
			model->counters[counter].initial, final);
}

void vb_history_check(struct vb_model *model)
{
	for (uint32_t i = 0; i < model->counter_count; i++) {
		if (model->counters[i].arena->is_retired)
			continue;
		if (model->counters[i].is_swap)
			check_swaps(model, i);
		else
			check_adds(model, i);
	}
}
