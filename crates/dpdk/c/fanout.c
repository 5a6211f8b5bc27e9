/* The AF_PACKET driver has the kernel put IPv4 fragments together (PACKET_FANOUT_FLAG_DEFRAG) before its ring gets them, and the ring
 * cuts what is then longer than one of its places: whoever is not an end of the connection loses the datagram. The driver has no
 * option for that, so its call is taken here. The symbol stands before the C library's (see link() in build.rs); all other calls
 * go to the kernel as they are. */

#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	int fanout;

	if (level == SOL_PACKET && name == PACKET_FANOUT && length == sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		fanout &= ~(PACKET_FANOUT_FLAG_DEFRAG << 16);
		value = &fanout;
	}
	return (int)syscall(SYS_setsockopt, socket, level, name, value, length);
}
