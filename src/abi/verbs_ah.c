/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles, including those that answer a datagram. The 40 bytes in front of a datagram hold
 * an IPv6 header (or a GRH, which is the same), or 20 undefined bytes and an IPv4 header.
 */
#include "abi/driver_priv.h"
#include "abi/export_priv.h"
#include "abi/refuse_priv.h"
#include "abi/returns.h"
#include "base/bytes.h"

enum { IPV4_OFFSET = 20, IPV4_SIZE = 20 };

VB_ABI_VERSION(ibv_create_ah, "ibv_create_ah@@@IBVERBS_1.1");
VB_ABI_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah;
	int error = vb_abi_ah_create(pd, attr, &ah);

	if (error)
		return vb_abi_return_null(error);
	ah->context = pd->context;
	ah->pd = pd;
	return ah;
}

VB_ABI_VERSION(ibv_destroy_ah, "ibv_destroy_ah@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	return vb_abi_return_errno(vb_abi_ah_destroy(ah));
}

VB_ABI_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
					      uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	uint16_t vlan;
	int error = vb_abi_ah_resolve(context, attr, eth_mac, &vlan);

	if (error)
		return -vb_abi_return_errno(error);
	if (vid)
		*vid = vlan;
	return 0;
}

/* The addresses of a received datagram, for either kind of header. */
struct route {
	union ibv_gid from, to;
	uint32_t flow_label;
	uint8_t traffic_class;
};

/*
 * Undefined bytes may look like IPv6, but a correct IPv4 checksum behind them is hardly a
 * coincidence.
 */
static bool is_ipv4(const uint8_t header[IPV4_SIZE])
{
	uint32_t sum = 0;

	if (header[0] != 0x45)
		return false;
	for (int i = 0; i < IPV4_SIZE; i += 2)
		sum += load16(header + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static union ibv_gid mapped_gid(const uint8_t address[4])
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	memcpy(gid.raw + 12, address, 4);
	return gid;
}

static int load_route(const struct ibv_grh *grh, struct route *route)
{
	const uint8_t *bytes = (const uint8_t *)grh;
	const uint8_t *ipv4 = bytes + IPV4_OFFSET;
	uint32_t word = load32(bytes);

	if (is_ipv4(ipv4)) {
		*route = (struct route){
			.from = mapped_gid(ipv4 + 12),
			.to = mapped_gid(ipv4 + 16),
			.traffic_class = ipv4[1],
		};
		return 0;
	}
	if (word >> 28 != 6)
		return vb_abi_refuse(
			EPROTONOSUPPORT,
			"ibv_init_ah_from_wc: neither an IPv4 nor an IPv6 header (0x%08x)", word);
	*route = (struct route){
		.from = grh->sgid,
		.to = grh->dgid,
		.flow_label = word & IB_GRH_FLOWLABEL_MASK,
		.traffic_class = word >> 20 & 0xff,
	};
	return 0;
}

static bool is_multicast(const union ibv_gid *gid)
{
	const union ibv_gid mapped = mapped_gid((const uint8_t[4]){ 0 });

	return gid->raw[0] == 0xff || (memcmp(gid, &mapped, 12) == 0 && gid->raw[12] >> 4 == 0xe);
}

static bool is_same_family(const union ibv_gid *a, const union ibv_gid *b)
{
	const union ibv_gid mapped = mapped_gid((const uint8_t[4]){ 0 });

	return (memcmp(a, &mapped, 12) == 0) == (memcmp(b, &mapped, 12) == 0);
}

/*
 * Finds the local address that the answer comes from: the destination of the datagram. For a group
 * it is our first address of the sender's family.
 */
static int find_sgid(struct ibv_context *context, uint8_t port, int table_length,
		     const struct route *route, uint8_t *index_out)
{
	for (int index = 0; index < table_length && index <= UINT8_MAX; index++) {
		struct ibv_gid_entry entry = { 0 };
		bool is_ours;

		if (vb_abi_query_gid(context, port, (uint32_t)index, &entry))
			continue;
		is_ours = is_multicast(&route->to)
				  ? is_same_family(&entry.gid, &route->from)
				  : memcmp(&entry.gid, &route->to, sizeof(entry.gid)) == 0;
		if (is_ours) {
			*index_out = (uint8_t)index;
			return 0;
		}
	}
	return vb_abi_refuse_at(ENOENT, context,
				"ibv_init_ah_from_wc: the datagram was sent to none of %s's GIDs",
				vb_abi_device_name(context));
}

VB_ABI_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
				      struct ibv_wc *wc, struct ibv_grh *grh,
				      struct ibv_ah_attr *ah_attr)
{
	struct ibv_ah_attr attr = {
		.dlid = wc->slid,
		.sl = wc->sl,
		.src_path_bits = wc->dlid_path_bits,
		.port_num = port_num,
	};
	struct ibv_port_attr port = { 0 };
	struct route route;
	int error = 0;

	if (wc->wc_flags & IBV_WC_GRH) {
		error = load_route(grh, &route);
		if (!error)
			error = vb_abi_query_port(context, port_num, &port);
		if (!error)
			error = find_sgid(context, port_num, port.gid_tbl_len, &route,
					  &attr.grh.sgid_index);
		if (error)
			return vb_abi_return_minus_one(error);
		/* the completion's value describes headers (enum vb_headers) */
		if (port.link_layer == IBV_LINK_LAYER_ETHERNET)
			attr.sl = 0;
		attr.is_global = 1;
		attr.grh.dgid = route.from;
		attr.grh.flow_label = route.flow_label;
		attr.grh.traffic_class = route.traffic_class;
		attr.grh.hop_limit = UINT8_MAX;
	}
	*ah_attr = attr;
	return 0;
}

VB_ABI_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
						   struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
