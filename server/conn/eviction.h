/* server/conn/eviction.h -- picks the connection to close when a new one finds no place or no
 * descriptor.  server/conn/accept.c calls it.
 *
 *   1. EVICT_IDLE           between two requests, or lingering after the last reply: the longest
 *                           idle first
 *   2. EVICT_ENDED          a file or an application is waited for, and the client sends no more:
 *                           it may be gone; the longest so first
 *   3. EVICT_SILENT, _HEAD  without a whole request head: of the client address that has most of
 *                           these.  Silent ones go first, then those that sent a part of a head,
 *                           oldest first
 *   4. EVICT_BUSY           a request is in progress: only for a client of another address, and
 *                           only of the one address with more than half of all connections; the
 *                           longest busy first
 *
 *   by_n[3] --> address --> address             by_bytes[11] --> address   (heads of 1024 .. 2047
 *                 |- silent: conn conn               |- ...                 bytes)
 *                 |- heads:  conn
 *                 `- busy:   conn conn conn
 *
 * Every call takes constant time: counts change by one, so the highest list that is not empty is
 * one step away.
 *
 * Bounds   one record for each address with a connection.
 * Thread   the worker's.
 */
#ifndef SERVER_CONN_EVICTION_H
#define SERVER_CONN_EVICTION_H

#include "base/client_addr.h"
#include "base/list.h"

#define EVICT_COUNTS   1024u /* addresses with more count as equal */
#define EVICT_CLASSES  40u
#define EVICT_BUCKETS  4096u
#define EVICT_MAJORITY 8u /* an address with fewer connections never has the majority */

enum eviction_kind { EVICT_NONE, EVICT_BUSY, EVICT_IDLE, EVICT_ENDED, EVICT_SILENT, EVICT_HEAD };

struct eviction_addr;

struct eviction_member { /* embedded in a connection; starts as {0} */
	struct list link;
	struct eviction_addr *from;
	uint32_t bytes; /* EVICT_HEAD: memory that the head holds */
	uint8_t kind;   /* enum eviction_kind; NONE: about to close, or new */
};

struct eviction {
	struct list idle, ended;
	struct list by_n[EVICT_COUNTS], by_bytes[EVICT_CLASSES];
	struct eviction_addr *bucket[EVICT_BUCKETS];
	struct eviction_addr *most; /* the last address that had more than half when it connected */
	unsigned all;               /* members */
	unsigned n;                 /* of them idle, ended, silent or without a whole head */
	unsigned top;               /* of by_n, the highest that is not empty */
	uint64_t bytes;             /* of all unfinished heads */
};

void eviction_init(struct eviction *);
/* Without memory for a new address the member is never evicted. */
void eviction_join(struct eviction *, struct eviction_member *, struct client_addr);
/* the address that it joined with; unknown without memory */
struct client_addr eviction_address(const struct eviction_member *);
void eviction_leave(struct eviction *, struct eviction_member *);
/* bytes matters for EVICT_HEAD only. */
void eviction_set(struct eviction *, struct eviction_member *, enum eviction_kind, uint32_t bytes);
/* The next idle, ended, silent or unfinished one; NULL: none. */
struct eviction_member *eviction_next(struct eviction *);
/* The oldest unfinished head of the address whose unfinished heads hold most memory (within a
 * factor of two); NULL: none. */
struct eviction_member *eviction_next_head(struct eviction *);
/* True if one address has more than half.  Connections over unix sockets have no address. */
bool eviction_has_majority(const struct eviction *);
bool eviction_is_majority(const struct eviction *, struct client_addr);
/* the busy ones of that address, those to close first in front; NULL: there is none */
struct list *eviction_busy(struct eviction *);
struct eviction_member *eviction_next_busy(struct eviction *); /* of that address; NULL: none */

#endif
