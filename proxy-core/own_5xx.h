/* proxy-core/own_5xx.h -- why a client got 502, 503 or 504 in place of an application's reply.
 *
 * Each try that fails has a line in the log; this counts only what the client got at the end.
 */
#ifndef PROXY_CORE_OWN_5XX_H
#define PROXY_CORE_OWN_5XX_H

#include <stdbool.h>

/* O(name, status, "name in metrics", "what happened") */
#define OWN_5XX(O)                                                                               \
	O(bad_reply, 502, "bad-reply", "the reply was malformed")                                \
	O(hang_up, 502, "hang-up", "the application hung up before its reply")                   \
	O(other, 502, "other", "no memory, or a request that the protocol cannot carry")         \
	O(connect, 503, "connect", "connecting failed")                                          \
	O(no_backend, 503, "no-backend", "every backend of the block is out")                    \
	O(queue_full, 503, "queue-full", "proxy-core.max-waiters requests waited")               \
	O(no_socket, 503, "no-socket", "no socket became free in time")                          \
	O(refused, 503, "refused", "the application said that it did not execute the request")   \
	O(gave_way, 503, "gave-way", "a slow request gave its socket to a client that had none") \
	O(connect_late, 504, "connect-timeout", "connecting took too long")                      \
	O(reply_late, 504, "reply-timeout", "the reply took too long")

enum own_5xx {
#define O(name, status, metric, doc) OWN_5XX_##name,
	OWN_5XX(O)
#undef O
	    OWN_5XX_CAUSES
};

struct own_5xx_info {
	int status;
	const char *name, *doc;
};
extern const struct own_5xx_info own_5xx_infos[OWN_5XX_CAUSES];

/* err: of the last try, -errno; waits: it had no socket yet. */
enum own_5xx own_5xx_of(int status, int err, bool waits);

#endif
