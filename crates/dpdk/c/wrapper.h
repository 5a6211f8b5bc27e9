/* What the bindings are made from. The shim's functions stand in shim.h. */
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_mempool.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_ethdev.h>
#include <rte_eth_ring.h>
#include "shim.h"

/* Macros bindgen cannot evaluate by itself. */
static const uint64_t ANCHORLINE_RSS_IPV4 = RTE_ETH_RSS_IPV4;
static const uint64_t ANCHORLINE_RSS_IPV6 = RTE_ETH_RSS_IPV6;
static const uint64_t ANCHORLINE_RSS_UDP = RTE_ETH_RSS_UDP;
static const uint64_t ANCHORLINE_RSS_TCP = RTE_ETH_RSS_TCP;
static const uint64_t ANCHORLINE_RSS_SCTP = RTE_ETH_RSS_SCTP;
static const uint64_t ANCHORLINE_RSS_GTPU = RTE_ETH_RSS_GTPU;
static const uint64_t ANCHORLINE_RSS_SOURCE_ONLY = RTE_ETH_RSS_L3_SRC_ONLY;
static const uint64_t ANCHORLINE_RSS_DESTINATION_ONLY = RTE_ETH_RSS_L3_DST_ONLY;
static const uint64_t ANCHORLINE_RSS_PREFIX64 = RTE_ETH_RSS_L3_PRE64;
static const uint64_t ANCHORLINE_RSS_L2_PAYLOAD = RTE_ETH_RSS_L2_PAYLOAD;
static const uint64_t ANCHORLINE_RSS_USUAL = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_SCTP;
static const uint64_t ANCHORLINE_RX_IPV4_CKSUM = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;
static const uint64_t ANCHORLINE_RX_UDP_CKSUM = RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
static const uint64_t ANCHORLINE_RX_TCP_CKSUM = RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
static const uint64_t ANCHORLINE_RX_SCTP_CKSUM = RTE_ETH_RX_OFFLOAD_SCTP_CKSUM;
static const uint64_t ANCHORLINE_TX_IPV4_CKSUM = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
static const uint64_t ANCHORLINE_TX_UDP_CKSUM = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
static const uint64_t ANCHORLINE_TX_TCP_CKSUM = RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
static const uint64_t ANCHORLINE_TX_SCTP_CKSUM = RTE_ETH_TX_OFFLOAD_SCTP_CKSUM;
static const unsigned int ANCHORLINE_RING_EXACT = RING_F_EXACT_SZ;
