/* base/timing.h -- the timing line of one file: the time of each stage.
 *
 * Pure.  The first thirteen words are those of 2007, so that scripts that use words 4, 6, 9 and 12
 * keep working; key=value in microseconds follow.
 *
 *   network_gthread_aio.c.78: (trace) write-start: 1173101341.237616 read-queue-wait: 680 ms
 *   read-time: 0 ms write-time: 21 ms id=c17.3 status=200 bytes=102400 hot=0 stat-queue-us=...
 *   path="..."      (all on one line)
 *
 * Before path, the first request of a connection with TLS has handshake-us=..., and a file that was
 * not sent to its end has cut=1: the client has left, or was too slow.
 *
 * Units    nanoseconds in, whole milliseconds and microseconds out, rounded down.
 */
#ifndef BASE_TIMING_H
#define BASE_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/text.h"

/* The stages of a request: STAGE(field, "name").  The handshake of TLS comes before the request:
 * total is without it. */
#define STAGES(S)                     \
	S(handshake, "handshake")     \
	S(stat_queue, "stat-queue")   \
	S(stat, "stat")               \
	S(proxy_queue, "proxy-queue") \
	S(proxy, "proxy")             \
	S(read_queue, "read-queue")   \
	S(read, "read")               \
	S(handover, "handover")       \
	S(write, "write")             \
	S(total, "total")

enum stage {
#define S(field, name) stage_##field,
	STAGES(S)
#undef S
	    NSTAGES
};

struct stage_info {
	const char *name;
	size_t offset; /* offset of its nanoseconds in struct timing */
};
extern const struct stage_info stage_infos[NSTAGES];

struct timing {
	const char *tag; /* of the file backend, "network_gthread_aio.c.78:" */
	const char *id;  /* "c17.3" */
	int status;
	bool hot;       /* no thread was needed */
	bool cut;       /* the reply broke off */
	uint64_t bytes; /* bytes of the file that the socket accepted */
	uint64_t write_start_wall_ns;
	uint64_t handshake_ns; /* of the connection, for its first request */
	uint64_t stat_queue_ns, stat_ns;
	uint64_t proxy_queue_ns, proxy_ns;
	uint64_t read_queue_ns, read_ns;
	uint64_t handover_ns; /* from the end of the read in a thread until the loop sees it */
	uint64_t write_ns, total_ns;
	struct text path;
};

enum timing_format { TIMING_OFF, TIMING_LINE, TIMING_JSON };

void timing_line(struct buf *out, const struct timing *);
uint64_t timing_stage(const struct timing *, enum stage); /* ns */
void timing_json(struct buf *out, const struct timing *);

#endif
