/* server/process/share.h -- a resource of the whole process, and the part that one client may hold.
 *
 * Rule     a client holds at most half of what the other clients leave.  One client alone gets a
 *          half, two get a third each, and there is always room for the next one.
 * Clients  differ by client_addr_key(), in SHARE_ROWS rows; two clients in one row share it.
 * Thread   any; relaxed atomics, so two takers at the limit may both be refused.
 */
#ifndef SERVER_PROCESS_SHARE_H
#define SERVER_PROCESS_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define SHARE_ROWS 1024u

struct share {
	uint64_t used;
	uint64_t row[SHARE_ROWS];
};

bool share_take(struct share *, uint32_t client, uint64_t n, uint64_t limit);
void share_give(struct share *, uint32_t client, uint64_t n);

#endif
