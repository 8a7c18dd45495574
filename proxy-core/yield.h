/* proxy-core/yield.h -- which request gives way when a client that has no socket waits for one.
 *
 *   pool  [a][a][a][b]   all busy     c waits, and has none
 *          |  |  `- served at full speed: stays
 *          |  `---- reads 10 KiB a second since 7 s
 *          `------- a WebSocket, silent since 40 s: gives way
 *
 * Each request has two debts (base/rate.h): time adds to them, and bytes that pass between the
 * server and the client reduce them.  So a pause within a fast reply is not slow, and there is no
 * moment at which a fast reply looks slow.
 *
 *                                    its client has several sockets     has this one only
 *   tunnel, slow reader or upload    YIELD_NS behind YIELD_RATE         YIELD_LONE_NS behind
 *                                                                       YIELD_LONE_RATE
 *   tunnel at any rate               its client has half of them        never
 *   no byte of the reply yet         the same, and its client has half  the same, and its client
 *                                    of the sockets                     has more requests waiting
 *   its client sends no more         YIELD_NS behind YIELD_RATE, to any request that waits
 *
 * A page whose reply has not begun loses most, so the other client waits half of its time first.
 * It does so for a tunnel that is not slow, too, which has no end to wait for.
 * A client that sends no more may wait for its reply (a health check), or be gone: then its
 * application works for nobody.  So its request gives way to any other, of its own address, too.
 * Of those that may give way, one whose client sends no more does; then one of the client with most
 * sockets; no page before others; then the one that is furthest behind.
 *
 * Bounds   a worker judges its own part of the pool; where that is one socket, all clients have
 *          only one each
 * Thread   pure.
 */
#ifndef PROXY_CORE_YIELD_H
#define PROXY_CORE_YIELD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/clock.h"

#define YIELD_NS        (5 * NS_PER_S)
#define YIELD_RATE      (64u << 10) /* bytes a second */
#define YIELD_LONE_NS   (30 * NS_PER_S)
#define YIELD_LONE_RATE (1u << 10)
#define YIELD_WAIT_NS   NS_PER_S /* the other client waits at least this long, or half its time */
#define YIELD_SAMPLE_NS (NS_PER_S / 4) /* from one look at the bytes to the next */

struct yield_debt {
	uint64_t at_ns, seen; /* of the last look: the time, and all bytes so far */
	uint64_t behind_ns, lone_ns;
};

void yield_start(struct yield_debt *, uint64_t now_ns, uint64_t bytes);
void yield_note(struct yield_debt *, uint64_t now_ns, uint64_t bytes);

struct yield_wait {      /* the client that waits */
	uint64_t for_ns; /* this long already */
	uint64_t max_ns; /* then it gets 503 */
	bool has_one;    /* it has another socket of the pool */
};

struct yield_holder {
	const struct yield_debt *debt;
	unsigned sockets; /* of its client in this pool */
	unsigned of;      /* sockets of the pool */
	bool queues;      /* its client has more requests that wait */
	bool page;        /* the whole request is sent, and the reply has not begun */
	bool tunnel;
	bool ended; /* its client sends no more */
};

bool yield_may(const struct yield_holder *, const struct yield_wait *);
/* If both may give way, true if a gives way first. */
bool yield_before(const struct yield_holder *a, const struct yield_holder *b);

#endif
