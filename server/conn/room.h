/* server/conn/room.h -- which connection makes room when there is no place, or no descriptor, for another.
 *
 *   1. ROOM_IDLE            kept open, or said goodbye to: idle for longest first
 *   2. ROOM_SILENT, _HEAD   no whole request head yet: of the client address that has most of them, the silent ones
 *                           first, then those that sent a part; of each the oldest
 *   3. ROOM_BUSY            a request is in progress: only for another address, and only of the one address that has more than
 *                           half of all connections; the one that is busy for longest
 *
 *   by_n[3] --> address --> address             by_bytes[11] --> address       (bytes of heads: 1024 .. 2047)
 *                 |- silent: conn conn               |- ...
 *                 |- heads:  conn
 *                 `- busy:   conn conn conn
 *
 * Every call takes constant time: counts change by one, so the highest list that is not empty is found by one step.
 *
 * Bounds   one record for each address with a connection.
 * Thread   that of the worker.
 */
#ifndef SERVER_CONN_ROOM_H
#define SERVER_CONN_ROOM_H

#include "base/client_addr.h"
#include "base/list.h"

#define ROOM_COUNTS 1024u /* addresses with more are equal */
#define ROOM_CLASSES 40u
#define ROOM_BUCKETS 4096u
#define ROOM_MAJORITY 8u  /* an address with fewer connections is never the one that has most */

enum room_kind { ROOM_NONE, ROOM_BUSY, ROOM_IDLE, ROOM_SILENT, ROOM_HEAD };

struct room_addr;

struct room_member { /* embedded in a connection; starts as {0} */
	struct list link;
	struct room_addr *from;
	uint32_t bytes; /* of HEAD: memory it holds */
	uint8_t kind;   /* enum room_kind; NONE: it is about to end, or has not waited yet */
};

struct room {
	struct list idle;
	struct list by_n[ROOM_COUNTS], by_bytes[ROOM_CLASSES];
	struct room_addr *bucket[ROOM_BUCKETS];
	struct room_addr *most; /* the last address that had more than half when it came */
	unsigned all;   /* members */
	unsigned n;     /* of them, idle, silent and without a whole head */
	unsigned top;   /* of by_n, the highest that is not empty */
	uint64_t bytes; /* of all unfinished heads */
};

void room_init(struct room *);
/* Without memory for a new address the member never makes room. */
void room_join(struct room *, struct room_member *, struct client_addr);
void room_leave(struct room *, struct room_member *);
/* bytes matters for ROOM_HEAD only. */
void room_set(struct room *, struct room_member *, enum room_kind, uint32_t bytes);
struct room_member *room_next(struct room *);      /* idle, silent or without a whole head; NULL: there is none */
/* Of the address whose unfinished heads hold most memory (within a factor of two), the oldest of them. */
struct room_member *room_next_head(struct room *); /* NULL: there is none */
/* Whether one address has more than half.  Unix sockets are nobody's. */
bool room_has_majority(const struct room *);
bool room_is_majority(const struct room *, struct client_addr);
struct room_member *room_next_busy(struct room *); /* of that address; NULL: there is none */

#endif
