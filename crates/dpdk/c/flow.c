#define _GNU_SOURCE
#define ALLOW_EXPERIMENTAL_API
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "shim.h"

/* A header's contents, as rte_flow wants them. */
union header {
	struct rte_flow_item_vlan vlan;
	struct rte_flow_item_ipv4 ipv4;
	struct rte_flow_item_ipv6 ipv6;
	struct rte_flow_item_udp udp;
	struct rte_flow_item_gtp gtp;
	struct rte_flow_item_gtp_psc psc;
};

static const enum rte_flow_item_type TYPES[] = {
	[ANCHORLINE_ITEM_ETH] = RTE_FLOW_ITEM_TYPE_ETH,
	[ANCHORLINE_ITEM_VLAN_PRIORITY] = RTE_FLOW_ITEM_TYPE_VLAN,
	[ANCHORLINE_ITEM_IPV4] = RTE_FLOW_ITEM_TYPE_IPV4,
	[ANCHORLINE_ITEM_IPV6] = RTE_FLOW_ITEM_TYPE_IPV6,
	[ANCHORLINE_ITEM_IPV4_TOS] = RTE_FLOW_ITEM_TYPE_IPV4,
	[ANCHORLINE_ITEM_IPV6_CLASS] = RTE_FLOW_ITEM_TYPE_IPV6,
	[ANCHORLINE_ITEM_IPV4_TO] = RTE_FLOW_ITEM_TYPE_IPV4,
	[ANCHORLINE_ITEM_IPV6_TO] = RTE_FLOW_ITEM_TYPE_IPV6,
	[ANCHORLINE_ITEM_IPV6_TO_PREFIX] = RTE_FLOW_ITEM_TYPE_IPV6,
	[ANCHORLINE_ITEM_UDP] = RTE_FLOW_ITEM_TYPE_UDP,
	[ANCHORLINE_ITEM_UDP_TO] = RTE_FLOW_ITEM_TYPE_UDP,
	[ANCHORLINE_ITEM_TCP] = RTE_FLOW_ITEM_TYPE_TCP,
	[ANCHORLINE_ITEM_SCTP] = RTE_FLOW_ITEM_TYPE_SCTP,
	[ANCHORLINE_ITEM_GTPU] = RTE_FLOW_ITEM_TYPE_GTPU,
	[ANCHORLINE_ITEM_GTPU_TEID] = RTE_FLOW_ITEM_TYPE_GTPU,
	[ANCHORLINE_ITEM_PSC] = RTE_FLOW_ITEM_TYPE_GTP_PSC,
	[ANCHORLINE_ITEM_PSC_TYPE] = RTE_FLOW_ITEM_TYPE_GTP_PSC,
	[ANCHORLINE_ITEM_PSC_QFI] = RTE_FLOW_ITEM_TYPE_GTP_PSC,
};

/* Writes what a header must say and which of it counts; 0 where it need only be there. */
static int fill(const struct anchorline_flow_item *item, union header *spec, union header *mask)
{
	uint32_t value = item->value & 0xff, counts = item->value >> 8;

	switch (item->kind) {
	case ANCHORLINE_ITEM_VLAN_PRIORITY:
		spec->vlan.tci = rte_cpu_to_be_16((uint16_t)(item->value << 13));
		mask->vlan.tci = rte_cpu_to_be_16(0xe000);
		return 1;
	case ANCHORLINE_ITEM_IPV4_TOS:
		spec->ipv4.hdr.type_of_service = (uint8_t)value;
		mask->ipv4.hdr.type_of_service = (uint8_t)counts;
		return 1;
	case ANCHORLINE_ITEM_IPV6_CLASS:
		spec->ipv6.hdr.vtc_flow = rte_cpu_to_be_32(value << 20);
		mask->ipv6.hdr.vtc_flow = rte_cpu_to_be_32(counts << 20);
		return 1;
	case ANCHORLINE_ITEM_IPV4_TO:
		memcpy(&spec->ipv4.hdr.dst_addr, item->address, 4);
		memset(&mask->ipv4.hdr.dst_addr, 0xff, 4);
		return 1;
	case ANCHORLINE_ITEM_IPV6_TO:
		memcpy(spec->ipv6.hdr.dst_addr, item->address, 16);
		memset(mask->ipv6.hdr.dst_addr, 0xff, 16);
		return 1;
	case ANCHORLINE_ITEM_IPV6_TO_PREFIX:
		memcpy(spec->ipv6.hdr.dst_addr, item->address, 8);
		memset(mask->ipv6.hdr.dst_addr, 0xff, 8);
		return 1;
	case ANCHORLINE_ITEM_UDP_TO:
		spec->udp.hdr.dst_port = rte_cpu_to_be_16((uint16_t)item->value);
		mask->udp.hdr.dst_port = 0xffff;
		return 1;
	case ANCHORLINE_ITEM_GTPU_TEID:
		spec->gtp.teid = rte_cpu_to_be_32(item->value);
		mask->gtp.teid = 0xffffffff;
		return 1;
	case ANCHORLINE_ITEM_PSC_TYPE:
		spec->psc.hdr.type = (uint8_t)(item->value & 0xf);
		mask->psc.hdr.type = 0xf;
		return 1;
	case ANCHORLINE_ITEM_PSC_QFI:
		spec->psc.hdr.qfi = (uint8_t)(item->value & 0x3f);
		mask->psc.hdr.qfi = 0x3f;
		return 1;
	default:
		return 0;
	}
}

/* The driver's words, else none. */
static int told(int status, const struct rte_flow_error *error, char *why, size_t room)
{
	if (room != 0)
		snprintf(why, room, "%s", status != 0 && error->message != NULL ? error->message : "");
	return status;
}

int anchorline_flow(uint16_t port, const struct anchorline_flow_rule *rule, struct rte_flow **created, char *why, size_t room)
{
	union header specs[ANCHORLINE_ITEMS_MAX], masks[ANCHORLINE_ITEMS_MAX];
	struct rte_flow_item pattern[ANCHORLINE_ITEMS_MAX + 1];
	struct rte_flow_attr attributes = { .group = rule->group, .priority = rule->priority, .ingress = 1 };
	struct rte_flow_action_queue queue = { .index = (uint16_t)rule->target };
	struct rte_flow_action_jump jump = { .group = rule->target };
	struct rte_flow_action_rss rss = {
		.func = rule->level != 0 ? RTE_ETH_HASH_FUNCTION_TOEPLITZ : RTE_ETH_HASH_FUNCTION_DEFAULT,
		.level = rule->level,
		.types = rule->types,
		.key = rule->key_length != 0 ? rule->key : NULL,
		.key_len = rule->key_length,
		.queue = rule->queue_count != 0 ? rule->queues : NULL,
		.queue_num = rule->queue_count,
	};
	struct rte_flow_action actions[2] = { { .type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &rss },
					      { .type = RTE_FLOW_ACTION_TYPE_END } };
	struct rte_flow_error error = { .message = NULL };

	if (rule->item_count > ANCHORLINE_ITEMS_MAX)
		return told(-E2BIG, &error, why, room);
	memset(specs, 0, sizeof(specs));
	memset(masks, 0, sizeof(masks));
	memset(pattern, 0, sizeof(pattern));
	for (uint32_t at = 0; at < rule->item_count; at++) {
		if (rule->items[at].kind >= RTE_DIM(TYPES))
			return told(-EINVAL, &error, why, room);
		pattern[at].type = TYPES[rule->items[at].kind];
		if (fill(&rule->items[at], &specs[at], &masks[at])) {
			pattern[at].spec = &specs[at];
			pattern[at].mask = &masks[at];
		}
	}
	pattern[rule->item_count].type = RTE_FLOW_ITEM_TYPE_END;
	if (rule->action == ANCHORLINE_ACTION_QUEUE)
		actions[0] = (struct rte_flow_action){ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue };
	if (rule->action == ANCHORLINE_ACTION_JUMP)
		actions[0] = (struct rte_flow_action){ .type = RTE_FLOW_ACTION_TYPE_JUMP, .conf = &jump };
	if (created == NULL)
		return told(rte_flow_validate(port, &attributes, pattern, actions, &error), &error, why, room);
	*created = rte_flow_create(port, &attributes, pattern, actions, &error);
	if (*created != NULL)
		return 0;
	return told(rte_errno > 0 ? -rte_errno : -EINVAL, &error, why, room);
}

int anchorline_flow_destroy(uint16_t port, struct rte_flow *flow, char *why, size_t room)
{
	struct rte_flow_error error = { .message = NULL };
	int status = flow != NULL ? rte_flow_destroy(port, flow, &error) : rte_flow_flush(port, &error);

	return told(status, &error, why, room);
}

int anchorline_rss_update(uint16_t port, uint8_t *key, uint8_t key_length, uint64_t types)
{
	struct rte_eth_rss_conf conf = { .rss_key = key, .rss_key_len = key_length, .rss_hf = types };

	return rte_eth_dev_rss_hash_update(port, &conf);
}

int anchorline_rss_table(uint16_t port, uint16_t entries, uint16_t period, uint16_t queues)
{
	struct rte_eth_rss_reta_entry64 table[RTE_ETH_RSS_RETA_SIZE_512 / RTE_ETH_RETA_GROUP_SIZE];

	if (entries == 0 || entries > RTE_ETH_RSS_RETA_SIZE_512 || period == 0 || queues == 0)
		return -EINVAL;
	memset(table, 0, sizeof(table));
	for (uint16_t at = 0; at < entries; at++) {
		struct rte_eth_rss_reta_entry64 *group = &table[at / RTE_ETH_RETA_GROUP_SIZE];

		group->mask |= UINT64_C(1) << (at % RTE_ETH_RETA_GROUP_SIZE);
		group->reta[at % RTE_ETH_RETA_GROUP_SIZE] = at % period % queues;
	}
	return rte_eth_dev_rss_reta_update(port, table, entries);
}

/* The driver is a library that DPDK loaded, its names hidden from others: only its own handle finds them. */
static void *of_i40e(const char *name)
{
	static const char *const LIBRARIES[] = { "librte_net_i40e.so.23", "librte_net_i40e.so.24", "librte_net_i40e.so.25",
						 "librte_net_i40e.so.26" };

	for (size_t at = 0; at < RTE_DIM(LIBRARIES); at++) {
		void *library = dlopen(LIBRARIES[at], RTLD_LAZY | RTLD_NOLOAD);

		/* the handle is kept: the driver stays loaded as long as the process */
		if (library != NULL)
			return dlsym(library, name);
	}
	return NULL;
}

/* As rte_pmd_i40e.h declares them (stable since DPDK 17.08). */
struct i40e_flow_type {
	uint16_t flow_type;
	uint64_t pctype;
};
struct i40e_inset {
	uint64_t inset;
	struct {
		uint8_t field;
		uint16_t mask;
	} masks[2];
};
enum { I40E_PACKAGE_ADD = 1, I40E_INSET_HASH = 1, I40E_LAST_WORD = 63 };

int anchorline_i40e_profile(uint16_t port, uint8_t *data, uint32_t size)
{
	int (*process)(uint16_t, uint8_t *, uint32_t, int);

	*(void **)&process = of_i40e("rte_pmd_i40e_process_ddp_package");
	if (process == NULL)
		return -ENOSYS;
	int status = process(port, data, size, I40E_PACKAGE_ADD);

	/* it is there already: what was wanted */
	return status == -EEXIST ? 0 : status;
}

int anchorline_i40e_flow_type(uint16_t port, uint8_t pctype, uint16_t flow_type)
{
	struct i40e_flow_type mapping = { .flow_type = flow_type, .pctype = UINT64_C(1) << (pctype & 63) };
	int (*update)(uint16_t, struct i40e_flow_type *, uint16_t, uint8_t);

	*(void **)&update = of_i40e("rte_pmd_i40e_flow_type_mapping_update");
	return update == NULL ? -ENOSYS : update(port, &mapping, 1, 0);
}

int anchorline_i40e_hash_words(uint16_t port, uint8_t pctype, const uint8_t *words, uint32_t count)
{
	struct i40e_inset inset;
	int (*set)(uint16_t, uint8_t, struct i40e_inset *, int);

	memset(&inset, 0, sizeof(inset));
	for (uint32_t at = 0; at < count; at++)
		inset.inset |= UINT64_C(1) << (I40E_LAST_WORD - (words[at] & I40E_LAST_WORD));
	*(void **)&set = of_i40e("rte_pmd_i40e_inset_set");
	return set == NULL ? -ENOSYS : set(port, pctype, &inset, I40E_INSET_HASH);
}
