/* SPDX-License-Identifier: BSD-2-Clause */
/* The native methods of Pingpong.java. A verb that fails becomes an exception. */
#include <infiniband/verbs.h>
#include <jni.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GID_INDEX 1

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *in, *out;
};

static void throw(JNIEnv * java, const char *what)
{
	jclass class = (*java)->FindClass(java, "java/io/IOException");

	(*java)->ThrowNew(java, class, what);
}

static struct end *end_of(jlong handle)
{
	return (struct end *)(intptr_t)handle;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (struct ibv_device **device = list; list && *device && !context; device++)
		if (!strcmp(ibv_get_device_name(*device), name))
			context = ibv_open_device(*device);
	if (list)
		ibv_free_device_list(list);
	return context;
}

static struct ibv_mr *register_buffer(JNIEnv *java, struct ibv_pd *pd, jobject buffer)
{
	return ibv_reg_mr(pd, (*java)->GetDirectBufferAddress(java, buffer),
			  (size_t)(*java)->GetDirectBufferCapacity(java, buffer),
			  IBV_ACCESS_LOCAL_WRITE);
}

static struct ibv_qp *make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

	if (qp &&
	    ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return NULL;
	return qp;
}

JNIEXPORT jlong JNICALL Java_Pingpong_open(JNIEnv *java, jclass class, jstring device, jobject in,
					   jobject out)
{
	const char *name = (*java)->GetStringUTFChars(java, device, NULL);
	struct end *end = calloc(1, sizeof(*end));

	(void)class;
	end->context = open_device(name);
	(*java)->ReleaseStringUTFChars(java, device, name);
	if (!end->context) {
		throw(java, "no such device");
		return 0;
	}
	end->pd = ibv_alloc_pd(end->context);
	end->cq = ibv_create_cq(end->context, 16, NULL, NULL, 0);
	end->in = end->pd ? register_buffer(java, end->pd, in) : NULL;
	end->out = end->pd ? register_buffer(java, end->pd, out) : NULL;
	end->qp = end->cq && end->in && end->out ? make_qp(end) : NULL;
	if (!end->qp)
		throw(java, "a verbs object cannot be made");
	return (jlong)(intptr_t)end;
}

JNIEXPORT jint JNICALL Java_Pingpong_qpNumber(JNIEnv *java, jclass class, jlong handle)
{
	(void)java, (void)class;
	return (jint)end_of(handle)->qp->qp_num;
}

JNIEXPORT jstring JNICALL Java_Pingpong_gid(JNIEnv *java, jclass class, jlong handle)
{
	union ibv_gid gid;
	char digits[33];

	(void)class;
	if (ibv_query_gid(end_of(handle)->context, 1, GID_INDEX, &gid)) {
		throw(java, "ibv_query_gid");
		return NULL;
	}
	for (int i = 0; i < 16; i++)
		snprintf(digits + 2 * i, 3, "%02x", gid.raw[i]);
	return (*java)->NewStringUTF(java, digits);
}

static void parse_gid(const char *digits, union ibv_gid *gid)
{
	for (int i = 0; i < 16; i++) {
		char byte[3] = { digits[2 * i], digits[2 * i + 1], 0 };

		gid->raw[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
}

JNIEXPORT void JNICALL Java_Pingpong_connect(JNIEnv *java, jclass class, jlong handle, jint qpn,
					     jint their_psn, jstring their_gid, jint own_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = (uint32_t)qpn,
		.rq_psn = (uint32_t)their_psn,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = GID_INDEX, .hop_limit = 64 } },
	};
	const char *digits = (*java)->GetStringUTFChars(java, their_gid, NULL);

	(void)class;
	if (strlen(digits) == 32)
		parse_gid(digits, &attr.ah_attr.grh.dgid);
	(*java)->ReleaseStringUTFChars(java, their_gid, digits);
	if (ibv_modify_qp(end_of(handle)->qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER)) {
		throw(java, "RTR");
		return;
	}
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = (uint32_t)own_psn;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	if (ibv_modify_qp(end_of(handle)->qp, &attr,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		throw(java, "RTS");
}

static struct ibv_sge sge_of(const struct ibv_mr *mr)
{
	return (struct ibv_sge){ (uintptr_t)mr->addr, (uint32_t)mr->length, mr->lkey };
}

JNIEXPORT void JNICALL Java_Pingpong_postReceive(JNIEnv *java, jclass class, jlong handle)
{
	struct ibv_sge sge = sge_of(end_of(handle)->in);
	struct ibv_recv_wr request = { .sg_list = &sge, .num_sge = 1 }, *bad;

	(void)class;
	if (ibv_post_recv(end_of(handle)->qp, &request, &bad))
		throw(java, "ibv_post_recv");
}

JNIEXPORT void JNICALL Java_Pingpong_postSend(JNIEnv *java, jclass class, jlong handle)
{
	struct ibv_sge sge = sge_of(end_of(handle)->out);
	struct ibv_send_wr request = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	(void)class;
	if (ibv_post_send(end_of(handle)->qp, &request, &bad))
		throw(java, "ibv_post_send");
}

JNIEXPORT void JNICALL Java_Pingpong_await(JNIEnv *java, jclass class, jlong handle, jint count)
{
	struct ibv_wc completion;

	(void)class;
	for (; count > 0; count--) {
		int found;

		do {
			found = ibv_poll_cq(end_of(handle)->cq, 1, &completion);
		} while (!found);
		if (found < 0 || completion.status != IBV_WC_SUCCESS) {
			throw(java,
			      found < 0 ? "ibv_poll_cq" : ibv_wc_status_str(completion.status));
			return;
		}
	}
}

JNIEXPORT void JNICALL Java_Pingpong_close(JNIEnv *java, jclass class, jlong handle)
{
	struct end *end = end_of(handle);

	(void)java, (void)class;
	ibv_destroy_qp(end->qp);
	ibv_destroy_cq(end->cq);
	ibv_dereg_mr(end->in);
	ibv_dereg_mr(end->out);
	ibv_dealloc_pd(end->pd);
	ibv_close_device(end->context);
	free(end);
}
