/* Rests of workers that have nothing to do. */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <string.h>

#include <rte_cpuflags.h>
#include <rte_ethdev.h>
#include <rte_power_intrinsics.h>

#include "shim.h"

uint32_t anchorline_rests(void)
{
	struct rte_cpu_intrinsics cpu;

	memset(&cpu, 0, sizeof(cpu));
	rte_cpu_get_intrinsics_support(&cpu);
	return (cpu.power_pause ? ANCHORLINE_REST_PAUSE : 0) | (cpu.power_monitor ? ANCHORLINE_REST_MONITOR : 0) |
	       (cpu.power_monitor_multi ? ANCHORLINE_REST_MONITOR_MULTI : 0);
}

int anchorline_pause_until(uint64_t tsc)
{
	return rte_power_pause(tsc);
}

/* Asked anew for each wait: the place moves on with every packet. */
static int condition(struct anchorline_queue queue, struct rte_power_monitor_cond *condition)
{
	memset(condition, 0, sizeof(*condition));
	int status = rte_eth_get_monitor_addr(queue.port, queue.queue, condition);

	/* Without the function nobody sees that a packet is there already, and the wait would be for the one behind it. */
	return status == 0 && condition->fn == NULL ? -ENOTSUP : status;
}

int anchorline_can_monitor(struct anchorline_queue queue)
{
	struct rte_power_monitor_cond unused;

	return condition(queue, &unused);
}

int anchorline_monitor(const struct anchorline_queue *queues, uint32_t count, uint64_t tsc)
{
	struct rte_power_monitor_cond conditions[ANCHORLINE_MONITOR_MAX];

	if (count == 0 || count > ANCHORLINE_MONITOR_MAX)
		return -EINVAL;
	for (uint32_t at = 0; at < count; at++) {
		int status = condition(queues[at], &conditions[at]);

		if (status < 0)
			return status;
	}
	return count == 1 ? rte_power_monitor(conditions, tsc) : rte_power_monitor_multi(conditions, count, tsc);
}
