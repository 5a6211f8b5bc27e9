/* DPDK's inline functions, once per burst, and the few things C says better than Rust. */
#ifndef ANCHORLINE_DPDK_SHIM_H
#define ANCHORLINE_DPDK_SHIM_H

#include <stddef.h>
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

/* Receives at most `limit` packets into `packets`; returns how many. */
uint16_t anchorline_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t limit);

/* Sends from the front of `packets`; returns how many the device took. */
uint16_t anchorline_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count);

/* All of `count` mbufs, reset, or none: 0 or a negative errno. */
int anchorline_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **packets, unsigned int count);

/* Frees `count` mbufs, none of them null. */
void anchorline_free_bulk(struct rte_mbuf **packets, unsigned int count);

/* A pool of mbufs, or null and the error number set. Where addresses need no translation (IOVA as VA) its mbufs
 * lie close together whatever the page size; rte_pktmbuf_pool_create() would give each a 4 KiB page of its own
 * when there are no huge pages, which costs memory and cache and makes AF_XDP lose packets. */
struct rte_mempool *anchorline_pool_create(const char *name, unsigned int capacity, unsigned int cache, uint16_t room);

/* Frees every mbuf that waits in a ring. */
void anchorline_ring_drain(struct rte_ring *ring);

/* DPDK's error number of this thread. */
int anchorline_errno(void);

/* Sends DPDK's log to `sink` from now on: 0, or -1 without the memory. `sink` gets text and its level. */
typedef void (*anchorline_log_sink)(const char *text, size_t length, uint32_t level);
int anchorline_log_to(anchorline_log_sink sink);

#endif
