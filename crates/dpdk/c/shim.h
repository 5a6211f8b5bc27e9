/* DPDK's inline functions, once per burst, and the few things C says better than Rust. */
#ifndef ANCHORLINE_DPDK_SHIM_H
#define ANCHORLINE_DPDK_SHIM_H

#include <stddef.h>
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;
struct rte_flow;

/* Receives at most `limit` packets into `packets`; returns how many. */
uint16_t anchorline_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t limit);

/* Sends from the front of `packets`; returns how many the device took. */
uint16_t anchorline_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count);

/* All of `count` mbufs, reset, or none: 0 or a negative errno. */
int anchorline_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **packets, unsigned int count);

/* Frees `count` mbufs, none of them null. */
void anchorline_free_bulk(struct rte_mbuf **packets, unsigned int count);

/* A pool of mbufs, or null and the error number set. Where addresses need no translation (IOVA as VA) its mbufs
 * lie close together whatever the page size, on a NUMA node or on any (-1); rte_pktmbuf_pool_create() would give each a 4 KiB page of its own
 * when there are no huge pages, which costs memory and cache and makes AF_XDP lose packets. */
struct rte_mempool *anchorline_pool_create(const char *name, unsigned int capacity, unsigned int cache, uint16_t room,
					   int node);

/* Addresses of at most `room` mbufs from all over a pool; returns how many. */
uint32_t anchorline_pool_sample(struct rte_mempool *pool, void **places, uint32_t room);

/* Frees every mbuf that waits in a ring. */
void anchorline_ring_drain(struct rte_ring *ring);

/* DPDK's error number of this thread. */
int anchorline_errno(void);

/* Sends DPDK's log to `sink` from now on: 0, or -1 without the memory. `sink` gets text and its level. */
typedef void (*anchorline_log_sink)(const char *text, size_t length, uint32_t level);
int anchorline_log_to(anchorline_log_sink sink);

/* One layer of a flow rule's pattern: which, and what its header must say. */
struct anchorline_flow_item {
	uint32_t kind;
	uint32_t value;
	uint8_t address[16];
};

enum {
	ANCHORLINE_ITEM_ETH,
	ANCHORLINE_ITEM_VLAN_PRIORITY,
	ANCHORLINE_ITEM_IPV4,
	ANCHORLINE_ITEM_IPV6,
	/* type of service or traffic class: the value below, the bits that count above it */
	ANCHORLINE_ITEM_IPV4_TOS,
	ANCHORLINE_ITEM_IPV6_CLASS,
	ANCHORLINE_ITEM_IPV4_TO,
	ANCHORLINE_ITEM_IPV6_TO,
	/* the first 64 bits of the address count */
	ANCHORLINE_ITEM_IPV6_TO_PREFIX,
	ANCHORLINE_ITEM_UDP,
	ANCHORLINE_ITEM_UDP_TO,
	ANCHORLINE_ITEM_TCP,
	ANCHORLINE_ITEM_SCTP,
	ANCHORLINE_ITEM_GTPU,
	ANCHORLINE_ITEM_GTPU_TEID,
	ANCHORLINE_ITEM_PSC,
	ANCHORLINE_ITEM_PSC_TYPE,
	ANCHORLINE_ITEM_PSC_QFI
};

enum { ANCHORLINE_ACTION_RSS, ANCHORLINE_ACTION_QUEUE, ANCHORLINE_ACTION_JUMP };

/* Most layers of a pattern. */
enum { ANCHORLINE_ITEMS_MAX = 12 };

struct anchorline_flow_rule {
	uint32_t group;
	uint32_t priority;
	const struct anchorline_flow_item *items;
	uint32_t item_count;
	uint32_t action;
	/* a queue, or a group to jump to */
	uint32_t target;
	uint32_t level;
	uint64_t types;
	const uint8_t *key;
	uint32_t key_length;
	uint32_t queue_count;
	const uint16_t *queues;
};

/* Asks the driver whether it takes a rule, and with `created` not null puts it in force: 0 or a negative errno, and the
 * driver's words, with their end, in `why` of `room` octets. */
int anchorline_flow(uint16_t port, const struct anchorline_flow_rule *rule, struct rte_flow **created, char *why, size_t room);

/* Takes one rule out of force, or with null all of the port's. */
int anchorline_flow_destroy(uint16_t port, struct rte_flow *flow, char *why, size_t room);

/* Sets the port's hash: types, and a key unless null. */
int anchorline_rss_update(uint16_t port, uint8_t *key, uint8_t key_length, uint64_t types);

/* The table from hash to queue: entry i leads to queue i % period % queues. */
int anchorline_rss_table(uint16_t port, uint16_t entries, uint16_t period, uint16_t queues);

/* What only the i40e driver has, found in it at run time: -ENOSYS where it is not loaded. */
int anchorline_i40e_profile(uint16_t port, uint8_t *data, uint32_t size);
int anchorline_i40e_flow_type(uint16_t port, uint8_t pctype, uint16_t flow_type);
int anchorline_i40e_hash_words(uint16_t port, uint8_t pctype, const uint8_t *words, uint32_t count);

/* DPDK's own Toeplitz hash of so many words, in the CPU's order, under a key of four octets more. */
uint32_t anchorline_toeplitz(uint32_t *words, uint32_t count, const uint8_t *key);

/* What this CPU has for rests, as this release of DPDK knows to use it. */
enum {
	/* a light sleep until a time */
	ANCHORLINE_REST_PAUSE = 1,
	/* one until a line of memory is written to, or a time */
	ANCHORLINE_REST_MONITOR = 2,
	/* one until any of several lines is */
	ANCHORLINE_REST_MONITOR_MULTI = 4
};
uint32_t anchorline_rests(void);

/* Sleeps lightly until a time: 0, or a negative errno at once. */
int anchorline_pause_until(uint64_t tsc);

struct anchorline_queue {
	uint16_t port;
	uint16_t queue;
};

/* Most queues that are waited on at once. */
enum { ANCHORLINE_MONITOR_MAX = 64 };

/* Whether a receive queue's driver tells where the next packet is written: 0, or a negative errno. */
int anchorline_can_monitor(struct anchorline_queue queue);

/* Waits until a packet comes to one of the queues, and until a time at the latest: 0, or a negative errno at once. It also
 * ends without either, as the CPU likes. By the thread that receives from all of these queues. */
int anchorline_monitor(const struct anchorline_queue *queues, uint32_t count, uint64_t tsc);

#endif
