#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <rte_thash.h>

#include "shim.h"

/* mbufs gathered before they go back to their pool together */
#define FREE_BATCH 64

uint16_t anchorline_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t limit)
{
	return rte_eth_rx_burst(port, queue, packets, limit);
}

uint16_t anchorline_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count)
{
	return rte_eth_tx_burst(port, queue, packets, count);
}

int anchorline_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **packets, unsigned int count)
{
	return rte_pktmbuf_alloc_bulk(pool, packets, count);
}

/*
 * A packet in one piece, which nobody else has: as such it goes back to its pool. Its "next" need not be read, which is NULL and in a
 * line that nothing else reads (drivers skip it the same way, RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE).
 */
static inline bool is_plain(const struct rte_mbuf *packet)
{
	return packet->nb_segs == 1 && rte_mbuf_refcnt_read(packet) == 1 && RTE_MBUF_DIRECT(packet);
}

/* rte_pktmbuf_free_bulk() compiled for this CPU: runs of one pool, which is the usual case, go back in one piece. */
void anchorline_free_bulk(struct rte_mbuf **packets, unsigned int count)
{
	void *batch[FREE_BATCH];
	struct rte_mempool *pool = NULL;
	unsigned int held = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct rte_mbuf *segment = packets[i];

		while (segment != NULL) {
			bool plain = segment == packets[i] && is_plain(segment);
			struct rte_mbuf *next = plain ? NULL : segment->next;
			struct rte_mbuf *free = plain ? segment : rte_pktmbuf_prefree_seg(segment);

			if (likely(free != NULL)) {
				if (held == FREE_BATCH || (held != 0 && free->pool != pool)) {
					rte_mempool_put_bulk(pool, batch, held);
					held = 0;
				}
				pool = free->pool;
				batch[held++] = free;
			}
			segment = next;
		}
	}
	if (held != 0)
		rte_mempool_put_bulk(pool, batch, held);
}

struct rte_mempool *anchorline_pool_create(const char *name, unsigned int capacity, unsigned int cache, uint16_t room,
					   int node)
{
	struct rte_pktmbuf_pool_private sizes = { .mbuf_data_room_size = room };
	unsigned int flags = rte_eal_iova_mode() == RTE_IOVA_VA ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
	struct rte_mempool *pool = rte_mempool_create_empty(name, capacity, sizeof(struct rte_mbuf) + room, cache,
							    sizeof(sizes), node, flags);

	if (pool == NULL)
		return NULL;
	int status = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (status == 0) {
		rte_pktmbuf_pool_init(pool, &sizes);
		status = rte_mempool_populate_default(pool);
	}
	if (status < 0) {
		rte_mempool_free(pool);
		rte_errno = -status;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

struct samples {
	void **places;
	uint32_t room;
	uint32_t found;
	uint32_t step;
};

static void sample(struct rte_mempool *pool, void *opaque, void *mbuf, unsigned int index)
{
	struct samples *samples = opaque;

	RTE_SET_USED(pool);
	if (index % samples->step == 0 && samples->found < samples->room)
		samples->places[samples->found++] = mbuf;
}

uint32_t anchorline_pool_sample(struct rte_mempool *pool, void **places, uint32_t room)
{
	struct samples samples = { .places = places, .room = room };

	if (room == 0)
		return 0;
	samples.step = pool->size / room + 1;
	rte_mempool_obj_iter(pool, sample, &samples);
	return samples.found;
}

void anchorline_ring_drain(struct rte_ring *ring)
{
	struct rte_mbuf *packets[FREE_BATCH];
	unsigned int taken;

	while ((taken = rte_ring_dequeue_burst(ring, (void **)packets, FREE_BATCH, NULL)) != 0)
		anchorline_free_bulk(packets, taken);
}

uint32_t anchorline_toeplitz(uint32_t *words, uint32_t count, const uint8_t *key)
{
	return rte_softrss(words, count, key);
}

int anchorline_errno(void)
{
	return rte_errno;
}

static ssize_t sink_write(void *cookie, const char *text, size_t length)
{
	int level = rte_log_cur_msg_loglevel();

	((anchorline_log_sink)cookie)(text, length, level < 0 ? 0 : (uint32_t)level);
	return (ssize_t)length;
}

int anchorline_log_to(anchorline_log_sink sink)
{
	cookie_io_functions_t functions = { .write = sink_write };
	FILE *stream = fopencookie((void *)sink, "w", functions);

	if (stream == NULL)
		return -1;
	return rte_openlog_stream(stream);
}
